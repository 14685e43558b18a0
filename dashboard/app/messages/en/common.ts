/** Why calls fail, by the reason that the core gives, with its details. */
type Reasons = Readonly<Record<string, (details: Readonly<Record<string, string>>) => string>>;

/** Sentences of the core that begin with what was typed, which stays as it is. */
const TYPED_FIRST = / is (?:none of|not an assigned code of|not in the IANA time zone database|the platform itself)\b/;

/** Texts that several pages use. */
export const common = {
  save: 'Save',
  cancel: 'Cancel',
  close: 'Close',
  delete: 'Delete',
  add: 'Add',
  undo: 'Undo',
  more: 'More',
  loadMore: 'Load more',
  copy: 'Copy',
  copied: 'Copied',
  copyOf: (what: string) => `Copy ${what}`,
  loading: 'Loading…',
  optional: 'optional',
  dismiss: 'Dismiss',
  actions: 'Actions',
  name: 'Name',
  created: 'Created',
  changed: 'Changed',
  status: 'Status',
  unknown: 'unknown',
  other: 'other',
  confirmName: (name: string) => `Type “${name}” to confirm`,
  discard: { title: 'Discard what you have entered?', text: 'It has not been saved.', action: 'Discard' },
  unavailable: 'Signpost is unavailable at the moment. Try again shortly.',
  /** A sentence that the core has stored, as about the last check of a domain. */
  coreSentence: (sentence: string) => sentence,
  tooManyCalls: 'Signpost is still answering many requests from your tabs or your team. Try again shortly.',
  notAllowed: (role: string) => `Your role does not allow this. It takes the role “${role}”.`,
  /** `sentence`: what the core says about a field, without its name. */
  invalid: (_field: string, sentence: string) =>
    TYPED_FIRST.test(sentence) ? sentence : sentence.charAt(0).toUpperCase() + sentence.slice(1),
  /** Where the core's own sentence, which is in English, does not do. */
  reasons: {
    // Read where the session had ended, or in what was kept until the person has signed in again.
    UNAUTHENTICATED: () => 'Your session had ended. Try again.',
    NOT_A_MEMBER: () => 'You are no longer a member of this account.',
    UNKNOWN_FOLDER: () => 'This folder does not exist any more.',
    IDEMPOTENCY_KEY_IN_FLIGHT: () => 'Your first request is still being carried out. Try again shortly.',
    UNIMPLEMENTED: () => 'This page and Signpost have different versions. Reload it.',
    CANCELED: () => 'The request was cancelled. Try again.',
    RESOLVERS_UNAVAILABLE: ({ hostname }) =>
      `The DNS servers did not answer for ${hostname}, so nothing has changed. Try again shortly.`,
    DOMAIN_NOT_RESOLVED: () => 'The domain of these codes does not point to Signpost at the moment.',
  } as Reasons,
  codes: (count: number, formatted: string) => `${formatted} ${count === 1 ? 'code' : 'codes'}`,
  scans: (count: number, formatted: string) => `${formatted} ${count === 1 ? 'scan' : 'scans'}`,
  pickColour: (what: string) => `${what}: pick a colour`,
  colourProblem: 'Use # and six hexadecimal digits, like #0a5f49.',
  urlProblems: {
    missing: 'Enter an address.',
    too_long: 'An address has at most 2,048 characters.',
    not_absolute: 'Use a complete address that begins with https:// or http://.',
    credentials: 'The address must not contain a user name or password.',
    host: 'This host name is not valid.',
  },
};

import { failure } from './errors.ts';

/** Codes of the types that plans do not limit: their name in `LIMITS`. */
export const NON_DYNAMIC = 'static and landing-page codes';

/** Limits of every account, whatever its plan or contract. Source: docs/contract.md, "Limits". */
export const LIMITS = {
  folders: 10_000,
  tags: 10_000,
  [NON_DYNAMIC]: 10_000,
  domains: 100,
  'webhook endpoints': 50,
  members: 1_000,
} as const;

/**
 * The maximum number of rows of a batch in any plan, of targets changed at once, and of all lists of rows in a message.
 * Source: docs/contract.md, "Batches"; docs/internal-callers.md, "Limits".
 */
export const MAX_ROWS = 25_000;

/** The maximum size of a message with rows, in bytes. Source: docs/internal-callers.md, "Limits". */
export const MAX_ROWS_BYTES = 8 * 1024 * 1024;

/** Requests that one key may make in any 60 seconds. Source: docs/contract.md, "Limits". */
export const BURST_LIMIT = 120;

/** The window of the burst limit, in ms. */
export const BURST_WINDOW_MS = 60_000;

/** The maximum timeout that a caller of the core can request, in ms. */
export const MAX_TIMEOUT_MS = 10 * 60_000;

/** The maximum number of tags of a code. Source: docs/contract.md, "The QR code resource". */
export const MAX_TAGS = 20;

/**
 * The maximum number of characters in the name of a folder or tag. Source: docs/contract.md, "The QR code resource".
 */
export const MAX_LABEL_CHARACTERS = 100;

/**
 * No spelling of such a name has more characters: decomposed, a character has at most four, and case folding makes at
 * most three of one.
 */
export const MAX_LABEL_SPELLING = 12 * MAX_LABEL_CHARACTERS;

/** Most distinct tag references that are read. A code has 20 tags, so more can only be other spellings or mistakes. */
export const MAX_TAG_REFERENCES = 5_000;

/** The message for too many tags in a field. */
export const tooManyTags = (field: string) => `${field}: a code can have at most ${MAX_TAGS} tags.`;
export const TOO_MANY_TAGS = tooManyTags('tags');

/** The message for a batch of so many rows. */
export const tooManyRows = (rows: number) =>
  `A batch may have at most ${MAX_ROWS} rows, this one has ${rows}; split it.`;

/**
 * The maximum size of a policy, in an event and in a route, and of a landing page, in bytes. With it a page of 100
 * codes fits a message of 8 MiB, and every record of the log is far below Kafka's default limit of 1 MiB. Source:
 * docs/targets.md, "Policies".
 */
const MAX_CONTENT_BYTES = 60_000;

/** A sentence if a policy or landing page of `bytes` is too large. */
export function contentProblem(field: string, bytes: number): string | undefined {
  if (bytes <= MAX_CONTENT_BYTES) return undefined;
  const [most, found] = [MAX_CONTENT_BYTES, bytes].map((number) => number.toLocaleString('en'));
  return `${field}: must have at most ${most} bytes; this one has ${found}.`;
}

/** The failure of a message of more than `bytes`, a whole number of KiB. `cause` is for the log. */
export function messageTooLarge(bytes: number, cause?: unknown) {
  const kib = bytes / 1024;
  const limit = kib < 1024 ? `${kib} KiB` : `${kib / 1024} MiB`;
  return failure('MESSAGE_TOO_LARGE', `The message must have at most ${limit}.`, {}, cause);
}

/** A limited kind of resource. */
export type Limited = keyof typeof LIMITS;

/** The limit as the main clause of a sentence. */
export function limitClause(what: Limited): string {
  return `an account has at most ${LIMITS[what].toLocaleString('en')} ${what}`;
}

/** Fails with LIMIT_REACHED if `present` has reached the limit. The transaction must have locked the account. */
export function expectBelowLimit(what: Limited, present: number): void {
  if (present >= LIMITS[what]) throw limitReached(what);
}

/** The failure of adding one more to as many as an account can have. */
export function limitReached(what: Limited) {
  return failure('LIMIT_REACHED', `Remove one first: ${limitClause(what)}.`, { limit: String(LIMITS[what]) });
}

import type { Messages } from '../../messages/index.ts';
import { badAddresses, badDates, emptyConditions } from './draft-problems.ts';
import type { TargetDraft } from './policy-draft.ts';

type FieldError = readonly [field: string, sentence: string];

interface Attempt {
  readonly wasSent: boolean;
  /** The fields of dates that were typed in part when the form was sent: to the form they are empty. */
  readonly unfinished: readonly string[];
  /** What the core said. */
  readonly rejected?: ReadonlyMap<string, string>;
}

/**
 * What the form says at its fields, by their paths in the API. What is missing, and addresses that may not be complete
 * yet, are reported once it was sent.
 */
export function targetErrors(draft: TargetDraft, attempt: Attempt, messages: Messages): ReadonlyMap<string, string> {
  const { wasSent, unfinished, rejected } = attempt;
  const { form } = messages.target;
  const empty = wasSent ? emptyConditions(draft) : [];
  return new Map([
    ...(rejected ?? []),
    ...empty.map((field) => [field, form.emptyCondition] as const),
    ...unfinished.map((field) => [field, form.unfinishedDate] as const),
    ...dateErrors(draft, messages),
    ...(wasSent ? addressErrors(draft, messages) : []),
  ]);
}

/** Why the core would not preview the draft. */
export function previewProblem(draft: TargetDraft, messages: Messages): FieldError | undefined {
  return dateErrors(draft, messages)[0] ?? addressErrors(draft, messages)[0];
}

function dateErrors(draft: TargetDraft, { target }: Messages): FieldError[] {
  return [...badDates(draft)].map(([field, problem]) => [field, target.form[problem]]);
}

function addressErrors(draft: TargetDraft, { common }: Messages): FieldError[] {
  return [...badAddresses(draft)].map(([field, problem]) => [field, common.urlProblems[problem]]);
}

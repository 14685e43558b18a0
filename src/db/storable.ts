import { isLonger } from '../../common/codes/is-longer.ts';
import { failure } from '../../common/contract/errors.ts';

/**
 * A text as Postgres can store it: with a symbol in place of NUL. For rows and calls that fail anyway, of which what
 * was sent is kept, or a sentence that may quote it.
 */
export function storable(text: string): string {
  return text.replaceAll('\0', '\u2400');
}

/** What is kept of a text of a row that fails, unless it may have more, in characters. */
const MAX_FAILED_TEXT = 256;

/** What is kept of the sentence that says why a row fails, in characters. */
export const MAX_REASON = 1_000;

/**
 * What is kept of a text of a row that fails: at most `most` characters, and no fewer than a valid row may have. A
 * caller may send megabytes for one row.
 */
export function excerpt(text: string | null | undefined, most = MAX_FAILED_TEXT): string | null {
  return text == null ? null : storable(cutOff(text, most));
}

/**
 * The same for a text that may contain no control characters. If it does, the excerpt remains invalid: U+0080 takes the
 * place of each, as Postgres can't store NUL, and JSON needs six bytes for most others.
 */
export function excerptStillInvalid(text: string, most: number): string {
  return cutOff(text, most).replace(/\p{Cc}/gu, '\u0080');
}

/** The first `most` characters and an ellipsis, so that it is still too long, or the text if it has no more. */
function cutOff(text: string, most: number): string {
  if (!isLonger(text, most)) return text;
  const characters = [...text.slice(0, 2 * most)].slice(0, most);
  return `${characters.join('')}…`;
}

/** A sentence if Postgres can't store one of the texts, which are given by their fields' names, because of a NUL. */
export function nulProblem(texts: Readonly<Record<string, string | undefined>>): string | undefined {
  const field = Object.keys(texts).find((name) => texts[name]?.includes('\0'));
  return field === undefined ? undefined : `${field}: must not contain the NUL character.`;
}

/** Fails with INVALID_FIELD if there is such a problem: before anything is looked up, unlike Postgres. */
export function expectStorable(texts: Readonly<Record<string, string | undefined>>): void {
  const problem = nulProblem(texts);
  if (problem !== undefined) throw failure('INVALID_FIELD', problem);
}

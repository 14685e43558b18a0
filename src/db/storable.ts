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
 * What is kept of a text of a row that fails: at most `most` characters, which is no fewer than a valid row may have,
 * with symbols in place of the control characters for which JSON needs six bytes. A caller may send megabytes for one
 * row, and a page of rows is written as JSON in one piece.
 */
export function excerpt(text: string | null | undefined, most = MAX_FAILED_TEXT): string | null {
  if (text == null) return null;
  return cutOff(text, most).replace(/\p{Cc}/gu, symbolOf);
}

function symbolOf(control: string): string {
  const isShort = control > '\x1f' || '\t\n\r'.includes(control);
  return isShort ? control : String.fromCharCode(0x2400 + control.charCodeAt(0));
}

/** The first `most` characters and an ellipsis, so that it is still too long, or the text if it has no more. */
export function cutOff(text: string, most: number): string {
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

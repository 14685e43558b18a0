import { failure } from '../../common/contract/errors.ts';

/**
 * A text as Postgres can store it: with a symbol in place of NUL. For rows and calls that fail anyway, of which what
 * was sent is kept, or a sentence that may quote it.
 */
export function storable(text: string): string;
export function storable(text: string | null | undefined): string | null;
export function storable(text: string | null | undefined): string | null {
  return text?.replaceAll('\0', '\u2400') ?? null;
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

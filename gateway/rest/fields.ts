import { z } from 'zod';

/**
 * Fields of request bodies. They are checked for what the wire can carry, which is their type: every other rule is the
 * core's, and `rules` repeats it for readers of the OpenAPI document.
 */
type Rules = Readonly<Record<string, unknown>>;

/** JSON can escape half of a surrogate pair, protobuf has no way to carry it. */
function text(must: string) {
  return z
    .string({ error: ({ input }) => (input === undefined ? 'is required' : must) })
    .refine((value) => value.isWellFormed(), 'must be well-formed Unicode');
}

/** A string that has to be there. */
export function requiredText(rules: Rules) {
  return text('must be a string').meta(rules);
}

/** A string that may be left out. */
export function optionalText(rules: Rules) {
  return requiredText(rules).exactOptional();
}

/** A string that may be left out, or null. */
export function nullableText(rules: Rules) {
  return text('must be a string or null').nullable().meta(rules).exactOptional();
}

/** True or false, or left out. */
export function optionalFlag(rules: Rules) {
  return z.boolean('must be true or false').meta(rules).exactOptional();
}

/**
 * Strings in an array that may be left out. One look at each, up to the first that is wrong: zod tells of all of them,
 * which took 640 ms for a body of 1 MiB.
 */
export function optionalTexts(rules: Rules) {
  return z
    .custom<string[]>(isTexts, 'must be an array of strings')
    .meta({ type: 'array', items: { type: 'string' }, ...rules })
    .exactOptional();
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string' && each.isWellFormed());
}

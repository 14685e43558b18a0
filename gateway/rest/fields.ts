import { z } from 'zod';

/**
 * Fields of request bodies. They are checked for their type only: every other rule is the core's, and `rules` repeats
 * it for readers of the OpenAPI document.
 */
type Rules = Readonly<Record<string, unknown>>;

/** A string that has to be there. */
export function requiredText(rules: Rules) {
  return z.string({ error: ({ input }) => (input === undefined ? 'is required' : 'must be a string') }).meta(rules);
}

/** A string that may be left out. */
export function optionalText(rules: Rules) {
  return z.string('must be a string').meta(rules).exactOptional();
}

/** A string that may be left out, or null. */
export function nullableText(rules: Rules) {
  return z.union([z.string(), z.null()], 'must be a string or null').meta(rules).exactOptional();
}

/** True or false, or left out. */
export function optionalFlag(rules: Rules) {
  return z.boolean('must be true or false').meta(rules).exactOptional();
}

/** Strings in an array that may be left out. */
export function optionalTexts(rules: Rules) {
  return z.array(z.string('must be a string'), 'must be an array of strings').meta(rules).exactOptional();
}

import { z } from 'zod';
import { MAX_TAG_REFERENCES, TOO_MANY_TAGS } from '../../../common/contract/limits.ts';
import { Refusal } from '../refusal.ts';

/**
 * Fields of request bodies. Only their types are checked here, as protobuf requires; all other rules are checked by the
 * core, and `rules` repeats them in the OpenAPI document.
 */
type Rules = Readonly<Record<string, unknown>>;

const WELL_FORMED = 'must be well-formed Unicode';

/** JSON can contain an escaped lone surrogate, which protobuf can't represent. */
function text(must: string) {
  return z
    .string({ error: ({ input }) => (input === undefined ? 'is required' : must) })
    .refine((value) => value.isWellFormed(), WELL_FORMED);
}

/** A required string. */
export function requiredText(rules: Rules) {
  return text('must be a string').meta(rules);
}

/** An optional string. */
export function optionalText(rules: Rules) {
  return requiredText(rules).exactOptional();
}

/** An optional string or null. */
export function nullableText(rules: Rules) {
  return text('must be a string or null').nullable().meta(rules).exactOptional();
}

/** An optional boolean. */
export function optionalFlag(rules: Rules) {
  return z.boolean('must be true or false').meta(rules).exactOptional();
}

/**
 * An optional array of strings. Validation stops at the first invalid one: zod's arrays report all of them, which took
 * 640 ms for a body of 1 MiB.
 */
export function optionalTexts(rules: Rules) {
  return z
    .custom<string[]>(areWellFormed, faultOfTexts('must be an array of strings'))
    .meta({ type: 'array', items: { type: 'string' }, ...rules })
    .exactOptional();
}

/** An optional array of strings, or null. */
export function nullableTexts(rules: Rules) {
  return z
    .custom<string[] | null>(
      (value) => value === null || areWellFormed(value),
      faultOfTexts('must be an array of strings or null'),
    )
    .meta({ type: ['array', 'null'], items: { type: 'string' }, ...rules })
    .exactOptional();
}

/** Tags without those that are repeated. The core counts those that are left. Throws a Refusal if they are too many. */
export function distinctTags(tags: readonly string[]): string[] {
  const distinct = new Set<string>();
  for (const tag of tags) {
    if (distinct.add(tag.trim()).size > MAX_TAG_REFERENCES) throw new Refusal('INVALID_FIELD', TOO_MANY_TAGS);
  }
  return [...distinct];
}

function areWellFormed(value: unknown): value is string[] {
  return areTexts(value) && value.every((text) => text.isWellFormed());
}

function areTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

function faultOfTexts(must: string) {
  return { error: ({ input }: { input: unknown }) => (areTexts(input) ? WELL_FORMED : must) };
}

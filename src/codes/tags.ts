import { failure } from '../contract/errors.ts';

/** Tags that one code may carry. Source: contract, Limits. */
const MAX_TAGS = 20;

/** References to tags, each once; fails when there are too many. */
export function tagsOrFailure(references: readonly string[]): readonly string[] {
  const distinct = new Map(references.map((reference) => [reference.trim().toLowerCase(), reference]));
  if (distinct.size > MAX_TAGS) throw failure('INVALID_FIELD', `tags: a code carries at most ${MAX_TAGS} tags.`);
  return [...distinct.values()];
}

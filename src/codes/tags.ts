import { failure } from '../contract/errors.ts';

/** Tags that one code may carry. Source: contract, Limits. */
const MAX_TAGS = 20;

/** References to tags, each once; fails when there are too many. */
export function tagsOrFailure(references: readonly string[]): readonly string[] {
  const distinct = new Map<string, string>();
  for (const reference of references) {
    const lowered = reference.trim().toLowerCase();
    if (!distinct.has(lowered)) distinct.set(lowered, reference);
  }
  if (distinct.size > MAX_TAGS) throw failure('INVALID_FIELD', `tags: a code carries at most ${MAX_TAGS} tags.`);
  return [...distinct.values()];
}

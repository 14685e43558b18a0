import { failure } from '../../common/contract/errors.ts';

/** Tags that one code may carry. Source: docs/contract.md, "Limits". */
const MAX_TAGS = 20;

/** References to tags, each once, or the sentence that says that they are too many. */
export function readTags(references: readonly string[]): { tags: readonly string[] } | { problem: string } {
  const distinct = new Map<string, string>();
  for (const reference of references) {
    const lowered = reference.trim().toLowerCase();
    if (!distinct.has(lowered)) distinct.set(lowered, reference);
  }
  if (distinct.size > MAX_TAGS) return { problem: `tags: a code carries at most ${MAX_TAGS} tags.` };
  return { tags: [...distinct.values()] };
}

/** The same, for callers that fail as a whole. */
export function tagsOrFailure(references: readonly string[]): readonly string[] {
  const read = readTags(references);
  if ('problem' in read) throw failure('INVALID_FIELD', read.problem);
  return read.tags;
}

/** The order in which Postgres gives tags: ICU's root collation. */
export const { compare: alphabetically } = new Intl.Collator('und');

import { failure } from '../../common/contract/errors.ts';
import { decodeId } from '../../common/contract/ids.ts';

/** The maximum number of tags of a code. Source: docs/contract.md, "The QR code resource". */
export const MAX_TAGS = 20;

/** The sentence about too many tags. */
export const TOO_MANY_TAGS = `tags: a code carries at most ${MAX_TAGS} tags.`;

/**
 * References to tags, each once, or the sentence that they are too many whatever they refer to. An id and a name may
 * refer to the same tag, so more than `MAX_TAGS` references are counted again once they are resolved.
 */
export function readTags(references: readonly string[]): { tags: readonly string[] } | { problem: string } {
  const tags = [...new Set(references.map((reference) => reference.trim()))];
  const [ids, names] = [new Set<string>(), new Set<string>()];
  for (const tag of tags) {
    if (decodeId('tag', tag) === undefined) names.add(coarselyFolded(tag));
    else ids.add(tag);
  }
  return Math.max(ids.size, names.size) > MAX_TAGS ? { problem: TOO_MANY_TAGS } : { tags };
}

/** The same, for callers that fail as a whole. */
export function tagsOrFailure(references: readonly string[]): readonly string[] {
  const read = readTags(references);
  if ('problem' in read) throw failure('INVALID_FIELD', read.problem);
  return read.tags;
}

/** Fails if the references led to more tags than a code may carry. */
export function expectFewTags(labels: readonly unknown[]): void {
  if (labels.length > MAX_TAGS) throw failure('INVALID_FIELD', TOO_MANY_TAGS);
}

/** At least as coarse as Postgres's folding of names: names that differ here are different tags. */
function coarselyFolded(name: string): string {
  return name.normalize('NFC').toLowerCase().toUpperCase().normalize('NFC');
}

/** The order in which Postgres returns tags: ICU's root collation. */
export const { compare: alphabetically } = new Intl.Collator('und');

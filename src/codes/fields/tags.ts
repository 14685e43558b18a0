import { foldedName } from '../../../common/codes/folded-name.ts';
import { failure } from '../../../common/contract/errors.ts';
import { decodeId } from '../../../common/contract/ids.ts';
import { MAX_TAGS, tooManyTags } from '../../../common/contract/limits.ts';
import { parseTagName } from '../../taxonomy/names.ts';

/**
 * Trims references to tags, ids or names, and removes duplicates; returns a problem if they certainly refer to more
 * than `MAX_TAGS` tags. Invalid names refer to none. An id and a name may refer to the same tag, so the tags are counted
 * again once they are resolved. `field`, here and below: the field that a problem mentions.
 */
export function readTags(
  references: readonly string[],
  field = 'tags',
): { tags: readonly string[] } | { problem: string } {
  const tags = [...new Set(references.map((reference) => reference.trim()))];
  const [ids, names] = [new Set<string>(), new Set<string>()];
  for (const tag of tags) {
    if (decodeId('tag', tag) !== undefined) ids.add(tag);
    else if ('name' in parseTagName(tag)) names.add(foldedName(tag));
  }
  return Math.max(ids.size, names.size) > MAX_TAGS ? { problem: tooManyTags(field) } : { tags };
}

/** Like `readTags`, but fails with INVALID_FIELD. */
export function tagsOrFailure(references: readonly string[], field?: string): readonly string[] {
  const read = readTags(references, field);
  if ('problem' in read) throw failure('INVALID_FIELD', read.problem);
  return read.tags;
}

/** Fails with INVALID_FIELD for more resolved tags than a code can have. */
export function expectAllowedTagCount(tags: readonly unknown[], field = 'tags'): void {
  if (tags.length > MAX_TAGS) throw failure('INVALID_FIELD', tooManyTags(field));
}

/**
 * Sorts the names of a code's tags. Postgres doesn't: its ICU is of another version than Node's, and orders new emoji
 * differently. Names that only differ in characters without weight, such as a zero-width space, are in binary order.
 */
export function alphabetically(names: readonly string[]): string[] {
  return names.length < 2 ? [...names] : names.toSorted((a, b) => compare(a, b) || (a < b ? -1 : 1));
}

/** ICU's root collation. */
const { compare } = new Intl.Collator('und');

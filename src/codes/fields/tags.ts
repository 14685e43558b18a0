import { foldedName } from '../../../common/codes/folded-name.ts';
import { failure } from '../../../common/contract/errors.ts';
import { decodeId } from '../../../common/contract/ids.ts';
import { MAX_TAG_REFERENCES, MAX_TAGS, tooManyTags } from '../../../common/contract/limits.ts';
import { parseTagName } from '../../taxonomy/names.ts';

/**
 * Trims references to tags, ids or names, and removes those of a tag that occurs already. Returns a problem, and those
 * that were read until then, if they certainly refer to more than `MAX_TAGS` tags, or are more than
 * `MAX_TAG_REFERENCES`: a row of a batch may have 500,000, and reading them all took 2 s. Invalid names refer to no
 * tag; of very many, those that are left have the same problems. An id and a name may refer to the same tag, so the
 * tags are counted again once they are resolved. `field`, here and below: the field that a problem mentions.
 */
export function readTags(references: readonly string[], field = 'tags'): { tags: readonly string[]; problem?: string } {
  const [read, ids] = [new Set<string>(), new Set<string>()];
  const [names, problems] = [new Set<string>(), new Set<string>()];
  const tags: string[] = [];
  let invalid = 0;
  for (const reference of references) {
    const tag = reference.trim();
    if (!isNewTo(read, tag)) continue;
    const parsed = parseTagName(tag);
    let keep = true;
    if (decodeId('tag', tag) !== undefined) ids.add(tag);
    else if ('name' in parsed) keep = isNewTo(names, foldedName(tag));
    else keep = isNewTo(problems, parsed.problem) || invalid++ < MAX_TAGS;
    if (keep) tags.push(tag);
    if (ids.size > MAX_TAGS || names.size > MAX_TAGS || read.size > MAX_TAG_REFERENCES) {
      return { tags, problem: tooManyTags(field) };
    }
  }
  return { tags };
}

/** Adds a text to those of a set; false if it is there already. */
function isNewTo(set: Set<string>, text: string): boolean {
  return set.size < set.add(text).size;
}

/** Like `readTags`, but fails with INVALID_FIELD. */
export function tagsOrFailure(references: readonly string[], field?: string): readonly string[] {
  const read = readTags(references, field);
  if (read.problem !== undefined) throw failure('INVALID_FIELD', read.problem);
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

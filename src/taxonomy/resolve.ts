import { isLonger } from '../../common/codes/is-longer.ts';
import { decodeId, newUuid } from '../../common/contract/ids.ts';
import { limitClause, MAX_LABEL_SPELLING } from '../../common/contract/limits.ts';
import { type Queryable, run, type Statement } from '../../common/postgres/sql.ts';
import { lockAccount } from '../access/lock-account.ts';
import { FOLDER, type Label, type LabelKind, type MatchedLabel, TAG } from './label-kinds.ts';
import type { ParsedName } from './names.ts';

/** Labels by the reference, an id or name, that matched them; references without a label are missing. */
export type Labels = ReadonlyMap<string, Label>;

/**
 * The result of resolving references. A reference that is in neither map was not created because the account has
 * reached its limit of labels.
 */
export interface ResolvedReferences {
  readonly kind: LabelKind;
  readonly found: Labels;
  /** Sentences that say why a reference is invalid, by reference. */
  readonly problems: ReadonlyMap<string, string>;
}

/**
 * Returns the labels of some of the references, without duplicates, and a warning for each reason why a reference has
 * none, not for each reference.
 */
export function labelsOf(
  { kind, found, problems }: ResolvedReferences,
  references: Iterable<string>,
): { labels: readonly Label[]; warnings: readonly string[] } {
  const labels = new Map<string, Label>();
  const warnings = new Set<string>();
  let limitReached = false;
  for (const reference of references) {
    const label = found.get(reference);
    const problem = problems.get(reference);
    if (label) labels.set(label.id, label);
    else if (problem !== undefined) warnings.add(problem);
    else limitReached = true;
  }
  if (limitReached)
    warnings.add(`${kind.field}: ${limitClause(kind.plural)}; delete some, or use or merge existing ones.`);
  return { labels: [...labels.values()], warnings: [...warnings] };
}

/**
 * Finds a folder by its id or name; undefined when the account has no such folder. `accountId`, here and below: UUID.
 */
export async function existingFolder(on: Queryable, accountId: string, reference: string): Promise<Label | undefined> {
  return (await findByReference(on, FOLDER.find, FOLDER, accountId, [reference])).get(reference);
}

/** Finds tags by their ids or names; unknown ones are skipped. */
export async function existingTags(
  on: Queryable,
  accountId: string,
  references: readonly string[],
): Promise<readonly Label[]> {
  const found = await findByReference(on, TAG.find, TAG, accountId, references);
  return [...new Map(found.values().map((label) => [label.id, label])).values()];
}

/** References to labels, ids or names, of a code or of several. */
export interface References {
  readonly folders: Iterable<string>;
  readonly tags: Iterable<string>;
  /** The field of the request that names the tags; default: `tags`. */
  readonly tagsField?: LabelKind['field'];
  /** Tags that are locked like the others if they exist, and are not created. */
  readonly otherTags?: Iterable<string>;
}

/**
 * Finds labels by their ids or names. Labels with unknown names are created, in the first spelling of each name, as far
 * as the account's limit allows. No other transaction can delete the labels until this one ends.
 *
 * Both kinds are found before any is created, because a transaction that waits for a label must not hold the account's
 * lock: a merge may hold that label and wait for one of a transaction that waits for the account.
 */
export async function resolveLabels(
  tx: Queryable,
  accountId: string,
  { folders, tags, tagsField = TAG.field, otherTags = [] }: References,
): Promise<{ readonly folders: ResolvedReferences; readonly tags: ResolvedReferences }> {
  const soughtFolders = await findAndLock(tx, FOLDER, accountId, folders);
  const soughtTags = await findAndLock(tx, { ...TAG, field: tagsField }, accountId, tags, otherTags);
  if (soughtFolders.missing.size > 0 || soughtTags.missing.size > 0) await lockAccount(tx, accountId);
  return {
    folders: await createMissing(tx, accountId, soughtFolders),
    tags: await createMissing(tx, accountId, soughtTags),
  };
}

/** References that were looked up. `missing`: the names of the labels to create, by reference. */
interface SoughtReferences extends ResolvedReferences {
  readonly missing: ReadonlyMap<string, string>;
}

async function findAndLock(
  tx: Queryable,
  kind: LabelKind,
  accountId: string,
  references: Iterable<string>,
  others: Iterable<string> = [],
): Promise<SoughtReferences> {
  const distinct = new Set(references);
  const found = await findByReference(tx, kind.findAndLock, kind, accountId, [...distinct.union(new Set(others))]);
  const missing = new Map<string, string>();
  const problems = new Map<string, string>();
  for (const reference of distinct) {
    if (found.has(reference)) continue;
    const parsed = newName(kind, reference);
    if ('problem' in parsed) problems.set(reference, parsed.problem);
    else missing.set(reference, parsed.name);
  }
  return { kind, found, problems, missing };
}

/**
 * The name of the label to create for a reference. An id is none: its label was deleted or merged, or never existed.
 */
function newName({ name, field, parseName }: LabelKind, reference: string): ParsedName {
  if (decodeId(name, reference.trim()) === undefined) return parseName(reference, field);
  return { problem: `${field}: no ${name} of this account has this id.` };
}

async function createMissing(
  tx: Queryable,
  accountId: string,
  { kind, found, problems, missing }: SoughtReferences,
): Promise<ResolvedReferences> {
  if (missing.size === 0) return { kind, found, problems };
  const names = [...missing.values()];
  const created = byReference([...missing.keys()], await run(tx, kind.create, [accountId, names.map(newUuid), names]));
  return { kind, found: new Map([...found, ...created]), problems };
}

async function findByReference(
  on: Queryable,
  find: Statement<MatchedLabel>,
  { name }: LabelKind,
  accountId: string,
  references: readonly string[],
): Promise<Labels> {
  const sought = references.filter(canMatch);
  if (sought.length === 0) return new Map();
  const names = sought.map((reference) => reference.trim());
  const ids = names.map((reference) => decodeId(name, reference) ?? null);
  return new Map(byReference(sought, await run(on, find, [accountId, ids, names])));
}

/**
 * Whether a label can have this name or id: none is empty, too long or has control characters. Postgres rejects NUL
 * even in a parameter.
 */
function canMatch(reference: string): boolean {
  const trimmed = reference.trim();
  return trimmed !== '' && !isLonger(trimmed, MAX_LABEL_SPELLING) && !/\p{Cc}/u.test(trimmed);
}

function byReference(references: readonly string[], matches: readonly MatchedLabel[]): [string, Label][] {
  return matches.map(({ nth, id, name }) => [references[nth - 1] ?? '', { id, name }]);
}

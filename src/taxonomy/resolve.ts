import { decodeId, newUuid } from '../../common/contract/ids.ts';
import { limitClause } from '../../common/contract/limits.ts';
import { type Queryable, run, type Statement } from '../../common/postgres/sql.ts';
import { lockAccount } from '../access/lock-account.ts';
import { FOLDER, type Kind, type Label, type Led, TAG } from './kinds.ts';

/** The labels of references, by reference; those that lead nowhere are not in it. */
export type Labels = ReadonlyMap<string, Label>;

/** What references led to. One that is neither a label nor a problem was not created, as the account has no room left. */
export interface Resolved {
  readonly kind: Kind;
  readonly found: Labels;
  /** Why a reference can be no label: a sentence, by reference. */
  readonly problems: ReadonlyMap<string, string>;
}

/**
 * The labels of some of the references, each once, and why others led to none: a sentence for each that can be no label,
 * and one for those that the account's limit did not allow.
 */
export function labelsOf(
  { kind, found, problems }: Resolved,
  references: Iterable<string>,
): { labels: readonly Label[]; warnings: readonly string[] } {
  const labels = new Map<string, Label>();
  const warnings: string[] = [];
  let full = false;
  for (const reference of references) {
    const label = found.get(reference);
    const problem = problems.get(reference);
    if (label) labels.set(label.id, label);
    else if (problem !== undefined) warnings.push(problem);
    else full = true;
  }
  if (full) warnings.push(`${kind.field}: ${limitClause(kind.plural)}; delete some, or use or merge existing ones.`);
  return { labels: [...labels.values()], warnings };
}

/** The folder of an id or name; undefined when there is none. */
export async function existingFolder(on: Queryable, accountId: string, reference: string): Promise<Label | undefined> {
  return (await lead(on, FOLDER.find, FOLDER, accountId, [reference])).get(reference);
}

/** The tags of ids or names that exist; others are left out. */
export async function existingTags(
  on: Queryable,
  accountId: string,
  references: readonly string[],
): Promise<readonly Label[]> {
  return eachOnce(await lead(on, TAG.find, TAG, accountId, references));
}

/**
 * The labels of ids or names; names not yet used are created, in their first spelling, as far as the account's limit
 * allows. They stay until the transaction ends.
 */
export async function resolveLabels(
  tx: Queryable,
  kind: Kind,
  accountId: string,
  references: Iterable<string>,
): Promise<Resolved> {
  const wanted = [...new Set(references)];
  const known = await lead(tx, kind.keep, kind, accountId, wanted);
  const missing: string[] = [];
  const names: string[] = [];
  const problems = new Map<string, string>();
  for (const reference of wanted) {
    if (known.has(reference)) continue;
    const checked = kind.nameOf(reference);
    if ('problem' in checked) {
      problems.set(reference, checked.problem);
    } else {
      missing.push(reference);
      names.push(checked.name);
    }
  }
  if (missing.length === 0) return { kind, found: known, problems };
  await lockAccount(tx, accountId);
  const created = byReference(missing, await run(tx, kind.create, [accountId, names.map(newUuid), names]));
  return { kind, found: new Map([...known, ...created]), problems };
}

async function lead(
  on: Queryable,
  how: Statement<Led>,
  { name }: Kind,
  accountId: string,
  references: readonly string[],
): Promise<Labels> {
  if (references.length === 0) return new Map();
  const ids = references.map((reference) => decodeId(name, reference) ?? null);
  return new Map(byReference(references, await run(on, how, [accountId, ids, references.map(soughtName)])));
}

/** Postgres takes no NUL, not even to look for it; and nothing is called by the empty name. */
function soughtName(reference: string): string {
  return reference.includes('\0') ? '' : reference.trim();
}

function byReference(references: readonly string[], led: readonly Led[]): [string, Label][] {
  return led.map(({ nth, id, name }) => [references[nth - 1] ?? '', { id, name }]);
}

function eachOnce(labels: Labels): Label[] {
  return [...new Map(labels.values().map((label) => [label.id, label])).values()];
}

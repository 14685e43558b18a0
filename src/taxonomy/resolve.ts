import { decodeId, newUuid } from '../contract/ids.ts';
import { type Queryable, run, type Statement } from '../db/sql.ts';
import { FOLDER, type Kind, type Label, type Led, TAG } from './kinds.ts';

/** The labels of references, by reference; those that lead nowhere are not in it. */
export type Labels = ReadonlyMap<string, Label>;

/** What a reference led to, or the sentence that says why it leads nowhere. */
export type Resolved<Found> = { readonly found: Found } | { readonly problem: string };

/** The folder of an id or name, created when it is a name not yet used; it stays until the transaction ends. */
export async function resolveFolder(tx: Queryable, accountId: string, reference: string): Promise<Resolved<Label>> {
  const { found, problems } = await resolveLabels(tx, FOLDER, accountId, [reference]);
  const label = found.get(reference);
  return label ? { found: label } : { problem: problems.join(' ') };
}

/**
 * The tags of ids or names, each once; names not yet used are created. They stay until the transaction ends. `problems`
 * holds a sentence for each reference that can be no tag.
 */
export async function resolveTags(
  tx: Queryable,
  accountId: string,
  references: readonly string[],
): Promise<{ found: readonly Label[]; problems: readonly string[] }> {
  const { found, problems } = await resolveLabels(tx, TAG, accountId, references);
  return { found: eachOnce(found), problems };
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
 * The labels of ids or names; names not yet used are created, in their first spelling. They stay until the transaction
 * ends. `problems` holds a sentence for each reference that can be no label.
 */
export async function resolveLabels(
  tx: Queryable,
  kind: Kind,
  accountId: string,
  references: Iterable<string>,
): Promise<{ found: Labels; problems: readonly string[] }> {
  const wanted = [...new Set(references)];
  const known = await lead(tx, kind.keep, kind, accountId, wanted);
  const missing: string[] = [];
  const names: string[] = [];
  const problems: string[] = [];
  for (const reference of wanted) {
    if (known.has(reference)) continue;
    const checked = kind.nameOf(reference);
    if ('problem' in checked) {
      problems.push(checked.problem);
    } else {
      missing.push(reference);
      names.push(checked.name);
    }
  }
  if (missing.length === 0) return { found: known, problems };
  const created = byReference(missing, await run(tx, kind.create, [accountId, names.map(newUuid), names]));
  return { found: new Map([...known, ...created]), problems };
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

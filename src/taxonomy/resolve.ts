import { decodeId, newUuid } from '../contract/ids.ts';
import { first, type Queryable, run, statement } from '../db/sql.ts';
import { folderName, tagName } from './names.ts';

/** A folder or tag as codes refer to it. `id` is a UUID. */
export interface Label {
  readonly id: string;
  readonly name: string;
}

/** What a reference led to, or the sentence that says why it leads nowhere. */
export type Resolved<Found> = { readonly found: Found } | { readonly problem: string };

/** Index: folders_pkey, folders_name. */
const findFolder = statement<Label>(
  'taxonomy_find_folder',
  `select id, name from folders
   where account_id = $1 and (id = $2 or lower(name collate "pg_c_utf8") = lower($3 collate "pg_c_utf8"))
   order by id = $2 desc nulls last limit 1`,
);

/** Waits for a concurrent creation of the same name instead of failing; the first spelling stays. */
const createFolder = statement<Label>(
  'taxonomy_create_folder',
  `insert into folders (id, account_id, name) values ($1, $2, $3) on conflict do nothing returning id, name`,
);

/** Index: tags_pkey, tags_name. */
const findTags = statement<Label>(
  'taxonomy_find_tags',
  `select id, name from tags
   where account_id = $1 and (id = any($2::uuid[]) or lower(name collate "pg_c_utf8") = any
     (select lower(n collate "pg_c_utf8") from unnest($3::text[]) n))`,
);

/** In one order for all transactions, so that two of them never wait for each other in a circle. */
const createTags = statement<Label>(
  'taxonomy_create_tags',
  `insert into tags (id, account_id, name)
   select id, $2, name from unnest($1::uuid[], $3::text[]) as t (id, name)
   order by lower(name collate "pg_c_utf8")
   on conflict do nothing`,
);

/** The folder of an id or name, created when it is a name not yet used. */
export async function resolveFolder(on: Queryable, accountId: string, reference: string): Promise<Resolved<Label>> {
  const existing = await existingFolder(on, accountId, reference);
  if (existing) return { found: existing };
  const checked = folderName(reference);
  if ('problem' in checked) return checked;
  const created = await first(on, createFolder, [newUuid(), accountId, checked.name]);
  const found = created ?? (await existingFolder(on, accountId, checked.name));
  if (!found) throw new Error('a folder that was just created is gone');
  return { found };
}

/** The folder of an id or name; undefined when there is none. */
export function existingFolder(on: Queryable, accountId: string, reference: string): Promise<Label | undefined> {
  return first(on, findFolder, [accountId, decodeId('folder', reference) ?? null, reference.trim()]);
}

/** The tags of ids or names that exist; others are left out. */
export async function existingTags(
  on: Queryable,
  accountId: string,
  references: readonly string[],
): Promise<readonly Label[]> {
  if (references.length === 0) return [];
  const ids = references.map((reference) => decodeId('tag', reference) ?? null);
  return run(on, findTags, [accountId, ids, references.map((reference) => reference.trim())]);
}

/**
 * The tags of ids or names, each once; names not yet used are created. `problems` holds a sentence for each reference
 * that can be no tag.
 */
export async function resolveTags(
  on: Queryable,
  accountId: string,
  references: readonly string[],
): Promise<{ found: readonly Label[]; problems: readonly string[] }> {
  if (references.length === 0) return { found: [], problems: [] };
  const known = await existingTags(on, accountId, references);
  const ids = new Set(known.map(({ id }) => id));
  const names = new Set(known.map(({ name }) => name.toLowerCase()));
  const missing: string[] = [];
  const problems: string[] = [];
  for (const reference of references) {
    if (ids.has(decodeId('tag', reference) ?? '') || names.has(reference.trim().toLowerCase())) continue;
    const checked = tagName(reference);
    if ('problem' in checked) problems.push(checked.problem);
    else missing.push(checked.name);
  }
  if (missing.length === 0) return { found: known, problems };
  await run(on, createTags, [missing.map(newUuid), accountId, missing]);
  return { found: [...known, ...(await existingTags(on, accountId, missing))], problems };
}

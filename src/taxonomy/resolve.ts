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

const FOLDER = `
  select id, name from folders
  where account_id = $1 and (id = $2 or lower(name collate "pg_c_utf8") = lower($3 collate "pg_c_utf8"))
  order by id = $2 desc nulls last limit 1`;

/** Index: folders_pkey, folders_name. */
const findFolder = statement<Label>('taxonomy_find_folder', FOLDER);

/** The same for who files a code in it: whoever wants to delete the folder waits until that has committed. */
const keepFolder = statement<Label>('taxonomy_keep_folder', `${FOLDER} for key share`);

/** The folder that another call created in the meantime is given as well, kept; the first spelling stays. */
const createFolder = statement<Label>(
  'taxonomy_create_folder',
  `insert into folders (id, account_id, name) values ($1, $2, $3)
   on conflict (account_id, lower(name collate "pg_c_utf8")) do update set name = folders.name returning id, name`,
);

const TAGS = `
  select id, name from tags
  where account_id = $1 and (id = any($2::uuid[]) or lower(name collate "pg_c_utf8") = any
    (select lower(n collate "pg_c_utf8") from unnest($3::text[]) n))`;

/** Index: tags_pkey, tags_name. */
const findTags = statement<Label>('taxonomy_find_tags', TAGS);

/** The same for who labels a code with them, as with folders; by id, the order in which merging locks two. */
const keepTags = statement<Label>('taxonomy_keep_tags', `${TAGS} order by id for key share`);

/** As with folders; in one order for all transactions, so that two of them never wait for each other in a circle. */
const createTags = statement<Label>(
  'taxonomy_create_tags',
  `insert into tags (id, account_id, name)
   select distinct on (lower(name collate "pg_c_utf8")) id, $2::uuid, name
   from unnest($1::uuid[], $3::text[]) as t (id, name)
   order by lower(name collate "pg_c_utf8")
   on conflict (account_id, lower(name collate "pg_c_utf8")) do update set name = tags.name returning id, name`,
);

/** The folder of an id or name, created when it is a name not yet used; it stays until the transaction ends. */
export async function resolveFolder(tx: Queryable, accountId: string, reference: string): Promise<Resolved<Label>> {
  const existing = await first(tx, keepFolder, folderValues(accountId, reference));
  if (existing) return { found: existing };
  const checked = folderName(reference);
  if ('problem' in checked) return checked;
  const found = await first(tx, createFolder, [newUuid(), accountId, checked.name]);
  if (!found) throw new Error('a folder that was just created is gone');
  return { found };
}

/** The folder of an id or name; undefined when there is none. */
export function existingFolder(on: Queryable, accountId: string, reference: string): Promise<Label | undefined> {
  return first(on, findFolder, folderValues(accountId, reference));
}

function folderValues(accountId: string, reference: string): unknown[] {
  return [accountId, decodeId('folder', reference) ?? null, soughtName(reference)];
}

/** The tags of ids or names that exist; others are left out. */
export async function existingTags(
  on: Queryable,
  accountId: string,
  references: readonly string[],
): Promise<readonly Label[]> {
  return references.length === 0 ? [] : run(on, findTags, tagValues(accountId, references));
}

function tagValues(accountId: string, references: readonly string[]): unknown[] {
  const ids = references.map((reference) => decodeId('tag', reference) ?? null);
  return [accountId, ids, references.map(soughtName)];
}

/** Postgres takes no NUL, not even to look for it; and nothing is called by the empty name. */
function soughtName(reference: string): string {
  return reference.includes('\0') ? '' : reference.trim();
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
  if (references.length === 0) return { found: [], problems: [] };
  const known = await run(tx, keepTags, tagValues(accountId, references));
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
  const created = await run(tx, createTags, [missing.map(newUuid), accountId, missing]);
  return { found: [...known, ...created.filter(({ id }) => !ids.has(id))], problems };
}

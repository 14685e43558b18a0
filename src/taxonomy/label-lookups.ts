import type { Pool } from 'pg';
import { first, run, statement } from '../../common/postgres/sql.ts';

/** Index: folders_pkey. */
const folderById = statement('taxonomy_folder_exists', 'select from folders where id = $1 and account_id = $2');

/** Whether the account has this folder. `accountId`, `id`: UUIDs. */
export async function folderExists(pool: Pool, accountId: string, id: string): Promise<boolean> {
  return (await first(pool, folderById, [id, accountId])) !== undefined;
}

/** A tag without codes returns one row of null. Indexes: tags_pkey, code_tags_by_tag. */
const codesByTag = statement<{ code_id: string | null }>(
  'taxonomy_codes_with_tag',
  `select ct.code_id from tags t left join code_tags ct on ct.tag_id = t.id where t.id = $1 and t.account_id = $2`,
);

/** UUIDs of the codes with this tag; undefined when the account has no such tag. `accountId`, `id`: UUIDs. */
export async function codesWithTag(pool: Pool, accountId: string, id: string): Promise<string[] | undefined> {
  const rows = await run(pool, codesByTag, [id, accountId]);
  return rows.length === 0 ? undefined : rows.flatMap(({ code_id }) => code_id ?? []);
}

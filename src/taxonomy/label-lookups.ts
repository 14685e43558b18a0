import type { Pool } from 'pg';
import { first, run, statement } from '../../common/postgres/sql.ts';
import { joinUndeletedCode } from '../db/undeleted-code.ts';

/** Index: folders_pkey. */
const folderById = statement('taxonomy_folder_exists', 'select from folders where id = $1 and account_id = $2');

/** Whether the account has this folder. `accountId`, `id`: UUIDs. */
export async function folderExists(pool: Pool, accountId: string, id: string): Promise<boolean> {
  return (await first(pool, folderById, [id, accountId])) !== undefined;
}

/**
 * A tag without codes returns one row of null. Deleted codes keep their tags, as they may be restored. Indexes: tags_pkey,
 * code_tags_by_tag.
 */
const codesByTag = statement<{ code_id: string | null }>(
  'taxonomy_codes_with_tag',
  `select c.id as code_id
   from tags t
   left join code_tags ct on ct.tag_id = t.id
   ${joinUndeletedCode('id', 'ct.code_id', '$2')}
   where t.id = $1 and t.account_id = $2`,
);

/** The codes with a tag, without deleted ones; undefined when the account has no such tag. All ids are UUIDs. */
export async function codesWithTag(pool: Pool, accountId: string, id: string): Promise<string[] | undefined> {
  const rows = await run(pool, codesByTag, [id, accountId]);
  return rows.length === 0 ? undefined : rows.flatMap(({ code_id }) => code_id ?? []);
}

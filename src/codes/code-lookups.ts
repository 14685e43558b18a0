import type { Pool } from 'pg';
import { first, run, statement } from '../../common/postgres/sql.ts';

/** Index: codes_pkey. */
const exists = statement('codes_exists', 'select from codes where id = $1 and account_id = $2 and deleted_at is null');

/** Whether the account has this code and it is not deleted. Ids are UUIDs. */
export async function codeExists(pool: Pool, accountId: string, codeId: string): Promise<boolean> {
  return (await first(pool, exists, [codeId, accountId])) !== undefined;
}

/** Index: codes_short_code_key. */
const byShortCode = statement<{ id: string }>(
  'codes_by_short_code',
  'select id from codes where short_code = $2 and account_id = $1',
);

/** The UUID of the account's code with this short code, deleted or not. `accountId`: UUID. */
export async function codeByShortCode(pool: Pool, accountId: string, shortCode: string): Promise<string | undefined> {
  return (await first(pool, byShortCode, [accountId, shortCode]))?.id;
}

/** A query for the ids of the codes of account $1 in folder $2, without deleted ones. Index: codes_in_folder. */
export const CODES_IN_FOLDER = 'select id from codes where account_id = $1 and folder_id = $2 and deleted_at is null';

/** Index: codes_pkey. */
const titles = statement<{ id: string; short_code: string; name: string | null }>(
  'codes_titles',
  'select id, short_code, name from codes where account_id = $1 and id = any($2::uuid[])',
);

/** Short codes and names of the account's codes, deleted ones included, by UUID. */
export async function codeTitles(
  pool: Pool,
  accountId: string,
  codeIds: readonly string[],
): Promise<ReadonlyMap<string, { readonly shortCode: string; readonly name: string | null }>> {
  const rows = await run(pool, titles, [accountId, codeIds]);
  return new Map(rows.map(({ id, short_code, name }) => [id, { shortCode: short_code, name }]));
}

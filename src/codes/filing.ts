import { type Queryable, run, statement } from '../../common/postgres/sql.ts';

/** Deleted codes too: they may be restored. Index: codes_filed. */
const refile = statement('codes_refile', 'update codes set folder_id = $3 where folder_id = $2 and account_id = $1');

/**
 * Files all codes of a folder in another one, or in none. That is no change of the codes: where they lead, their
 * versions and times stay. Ids are UUIDs; the folders have to be locked.
 */
export async function refileCodes(tx: Queryable, accountId: string, from: string, to: string | null): Promise<void> {
  await run(tx, refile, [accountId, from, to]);
}

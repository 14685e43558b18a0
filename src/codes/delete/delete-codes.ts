import type { PoolClient } from 'pg';
import { run, statement } from '../../../common/postgres/sql.ts';
import { announceCurrent } from '../announce.ts';
import { CHANGED } from '../code-row.ts';

/** Indexes: codes_pkey, code_counts_pkey. */
const remove = statement(
  'codes_delete_all',
  `with removed as (
     update codes set deleted_at = now(), ${CHANGED}
     where account_id = $1 and id = any($2::uuid[]) returning type
   )
   update code_counts
   set listed = listed - (select count(*) from removed),
       live = live - (select count(*) from removed where type = 'dynamic')
   where account_id = $1`,
);

/** Deletes and announces codes that the transaction has locked and that are not deleted. All ids are UUIDs. */
export async function deleteLocked(
  tx: PoolClient,
  platformUrl: string,
  accountId: string,
  ids: readonly string[],
): Promise<void> {
  await run(tx, remove, [accountId, ids]);
  await announceCurrent(tx, platformUrl, accountId, ids, () => ({ type: 'qr.archived' }));
}

import type { Pool } from 'pg';
import { first, statement } from '../../common/postgres/sql.ts';
import { joinUndeletedCode } from '../db/look-up-code.ts';

/** Index: batches_pkey. */
const exists = statement('batches_exists', 'select from batches where id = $1 and account_id = $2');

/** Whether the account has this batch. `accountId`, `id`: UUIDs. */
export async function batchExists(pool: Pool, accountId: string, id: string): Promise<boolean> {
  return (await first(pool, exists, [id, accountId])) !== undefined;
}

/**
 * A query for the ids of the codes of batch $2 of account $1, null for rows without a code and deleted codes. Indexes:
 * batches_pkey, batch_rows_pkey.
 */
export const CODES_OF_BATCH = `
  select c.id
  from batches b join batch_rows r on r.batch_id = b.id ${joinUndeletedCode('id', 'r.code_id', '$1')}
  where b.id = $2 and b.account_id = $1`;

import type { Pool } from 'pg';
import { run, statement } from '../../common/postgres/sql.ts';
import type { Database } from '../db/database.ts';
import { joinUndeletedCode } from '../db/undeleted-code.ts';
import { BatchEntity } from './entities.ts';

/** A batch without rows returns one row of null. Indexes: batches_pkey, batch_rows_pkey. */
const created = statement<{ code_id: string | null }>(
  'batches_codes',
  `select c.id as code_id
   from batches b
   left join batch_rows r on r.batch_id = b.id
   ${joinUndeletedCode('id', 'r.code_id', '$2')}
   where b.id = $1 and b.account_id = $2`,
);

/** The codes of a batch that have not been deleted; undefined if the account has no such batch. Ids are UUIDs. */
export async function codesOfBatch(pool: Pool, accountId: string, id: string): Promise<string[] | undefined> {
  const rows = await run(pool, created, [id, accountId]);
  return rows.length === 0 ? undefined : rows.flatMap(({ code_id }) => code_id ?? []);
}

/** Deletes the batches of a closed account; their foreign key deletes the rows. `accountId`: UUID. */
export async function deleteBatches({ orm }: Database, accountId: string): Promise<void> {
  await orm.em.fork().nativeDelete(BatchEntity, { accountId });
}

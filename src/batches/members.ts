import type { Pool } from 'pg';
import { run, statement } from '../../common/postgres/sql.ts';
import type { Database } from '../db/database.ts';
import { BatchEntity } from './entities.ts';

/**
 * A batch without rows returns one row of null. The lateral subquery looks each row's code up, as in an export: a join
 * could start from all codes of the account. Indexes: batches_pkey, batch_rows_pkey, codes_pkey or codes_listed.
 */
const created = statement<{ code_id: string | null }>(
  'batches_codes',
  `select c.id as code_id
   from batches b
   left join batch_rows r on r.batch_id = b.id
   left join lateral (
     select id from codes where id = r.code_id and account_id = $2 and deleted_at is null offset 0
   ) c on true
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

import type { Pool, PoolClient } from 'pg';
import { MAX_UUID } from '../../../common/contract/ids.ts';
import { run, statement, transaction } from '../../../common/postgres/sql.ts';
import { listed } from '../../db/columns.ts';
import { ERASED_COLUMNS } from '../code-row.ts';
import { deleteLocked } from './delete-codes.ts';

/** Codes per transaction: few enough to block others only briefly, enough to delete a million codes within minutes. */
const MAX_CODES = 500;

/** In the order in which changes of several codes lock them, so that they cannot deadlock. Index: codes_listed. */
const lockNext = statement<{ id: string }>(
  'codes_lock_live',
  `select id from codes where account_id = $1 and deleted_at is null order by id desc limit ${MAX_CODES} for update`,
);

/**
 * Deletes all codes of an account and announces each as if it had been deleted on its own. Continues where an earlier
 * call was interrupted. `accountId`, here and below: UUID.
 */
export async function deleteAccountCodes(pool: Pool, platformUrl: string, accountId: string): Promise<void> {
  while (await transaction(pool, (tx) => deleteSome(tx, platformUrl, accountId)));
}

/** Deletes the next codes; returns whether there were any. */
async function deleteSome(tx: PoolClient, platformUrl: string, accountId: string): Promise<boolean> {
  const ids = (await run(tx, lockNext, [accountId])).map(({ id }) => id);
  if (ids.length === 0) return false;
  await deleteLocked(tx, platformUrl, accountId, ids);
  return true;
}

const ASSIGNMENTS = ERASED_COLUMNS.map(({ name, nullable }) => `${name} = ${nullable ? 'null' : 'default'}`).join(', ');
const NULLABLE = listed(ERASED_COLUMNS.filter(({ nullable }) => nullable));

/**
 * The next codes before $2, in the same order: those that are erased stay in the index, and would be read again each
 * time. Index: codes_deleted.
 */
const erase = statement<{ id: string }>(
  'codes_erase',
  `update codes set ${ASSIGNMENTS}
   where (account_id, id) in (
     select account_id, id from codes
     where account_id = $1 and id < $2 and deleted_at is not null and num_nonnulls(${NULLABLE}) > 0
     order by id desc limit ${MAX_CODES} for update
   )
   returning id`,
);

/**
 * Erases the data of the account's deleted codes. Continues where an earlier call was interrupted. Routes and versions
 * stay as they are: the route of a deleted code has nothing that is erased.
 */
export async function eraseAccountCodes(pool: Pool, accountId: string): Promise<void> {
  let last = MAX_UUID;
  const eraseSome = async (tx: PoolClient) => {
    const rows = await run(tx, erase, [accountId, last]);
    for (const { id } of rows) if (id < last) last = id;
    return rows.length > 0;
  };
  while (await transaction(pool, eraseSome));
}

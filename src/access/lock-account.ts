import { type Queryable, run, statement } from '../../common/postgres/sql.ts';

/** This lock mode does not block foreign-key checks, such as those of new codes. Index: accounts_pkey. */
const lock = statement('access_lock_account', 'select from accounts where id = $1 for no key update');

/**
 * Locks an account until the transaction ends. A transaction that adds something limited per account (`LIMITS`) does so
 * before counting, in a separate statement: one statement would count a snapshot from before it waited. Lock order:
 * labels, accounts, codes and their counters. `accountId`: UUID.
 */
export async function lockAccount(tx: Queryable, accountId: string): Promise<void> {
  await run(tx, lock, [accountId]);
}

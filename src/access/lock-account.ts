import { type Queryable, run, statement } from '../../common/postgres/sql.ts';

/** The mode lets whoever only refers to the account pass, such as those who create codes. Index: accounts_pkey. */
const lock = statement('access_lock_account', 'select from accounts where id = $1 for no key update');

/**
 * Locks an account until the transaction ends. Whoever adds something of which an account may have so many only
 * (`LIMITS`) does so before counting, in a statement of its own: what the same statement counts would be as it was before
 * it waited. Labels are locked before accounts, codes and their counters after them. `accountId`: UUID.
 */
export async function lockAccount(tx: Queryable, accountId: string): Promise<void> {
  await run(tx, lock, [accountId]);
}

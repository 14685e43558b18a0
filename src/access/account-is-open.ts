import { first, type Queryable, statement } from '../../common/postgres/sql.ts';

/** Index: accounts_pkey. */
const select = statement<{ now: Date }>(
  'access_time_if_open',
  'select now() as now from accounts where id = $1 and closed_at is null',
);

/**
 * The time of the transaction; undefined if the account is closed, in which background work stops. `accountId`: UUID.
 */
export async function timeIfOpen(tx: Queryable, accountId: string): Promise<Date | undefined> {
  return (await first(tx, select, [accountId]))?.now;
}

/** Whether the account is open. `accountId`: UUID. */
export async function isOpen(on: Queryable, accountId: string): Promise<boolean> {
  return (await timeIfOpen(on, accountId)) !== undefined;
}

import type { Pool } from 'pg';
import { first, type Queryable, run, statement } from '../db/sql.ts';

/** What an account has used. */
export interface Used {
  /** Requests of this month. */
  readonly requests: number;
  /** Live dynamic codes. */
  readonly codes: number;
}

/** Indexes: meters_pkey, code_counts_pkey. */
const read = statement<{ requests: string; codes: string }>(
  'access_usage',
  `select case when m.month = date_trunc('month', now() at time zone 'utc')::date then m.used else 0 end as requests,
          c.live as codes
   from meters m join code_counts c using (account_id) where account_id = $1`,
);

/** What the account with this UUID has used. */
export async function usageOf(pool: Pool, accountId: string): Promise<Used> {
  const row = await first(pool, read, [accountId]);
  return { requests: Number(row?.requests ?? 0), codes: Number(row?.codes ?? 0) };
}

const open = statement(
  'access_open_meters',
  'with meter as (insert into meters (account_id) values ($1)) insert into code_counts (account_id) values ($1)',
);

/** Gives a new account what admission and limits count in; without it no key of the account is admitted. */
export async function openMeters(on: Queryable, accountId: string): Promise<void> {
  await run(on, open, [accountId]);
}

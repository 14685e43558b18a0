import type { Pool } from 'pg';
import { first, promptStatement } from '../../common/postgres/sql.ts';
import type { Account } from './caller.ts';
import { PLANS } from './plans.ts';

/** What `ACCOUNT` selects. */
export interface AccountRow {
  id: string;
  api: boolean;
  bulk: boolean;
  images: boolean;
  monthly_quota: string | null;
  code_limit: string | null;
  batch_limit: number;
}

/** The plans as rows, so that one statement checks everything. */
const PLAN_ROWS = Object.entries(PLANS)
  .map(
    ([name, plan]) =>
      `('${name}', ${plan.api}, ${plan.bulk}, ${plan.images}, ${plan.monthlyQuota}::bigint, ${plan.codeLimit}::bigint, ${plan.batchLimit})`,
  )
  .join(', ');

/**
 * Features and limits of an account: from its plan, unless overridden for it. `where` selects the account; `more`:
 * further columns.
 */
export const ACCOUNT = (where: string, more = '') => `
  select a.id, ${more}
         coalesce(a.feature_api, p.api) as api,
         coalesce(a.feature_bulk, p.bulk) as bulk,
         coalesce(a.feature_images, p.images) as images,
         coalesce(a.monthly_quota, p.quota) as monthly_quota,
         coalesce(a.code_limit, p.codes) as code_limit,
         coalesce(a.batch_limit, p.rows) as batch_limit
  from accounts a
  join (values ${PLAN_ROWS}) as p (name, api, bulk, images, quota, codes, rows) on p.name = a.plan
  ${where}`;

/** The account named by an internal service. Index: accounts_pkey. */
const findAccount = promptStatement<AccountRow>(
  'access_find_account',
  ACCOUNT('where a.id = $1 and (a.closed_at is null or $2)'),
);

/** The account with this UUID, unmetered; undefined unless it is open, or closed and `includeClosed`. */
export async function accountById(pool: Pool, id: string, includeClosed = false): Promise<Account | undefined> {
  const row = await first(pool, findAccount, [id, includeClosed]);
  return row && accountFrom(row);
}

/** Converts a row. */
export function accountFrom(row: AccountRow): Account {
  return {
    id: row.id,
    features: { api: row.api, bulk: row.bulk, images: row.images },
    codeLimit: row.code_limit === null ? null : Number(row.code_limit),
    batchLimit: row.batch_limit,
  };
}

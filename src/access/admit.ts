import type { Pool } from 'pg';
import { failure } from '../../common/contract/errors.ts';
import { CLOCK_MS, tooLate } from '../../common/postgres/commit-limit.ts';
import { first, promptStatement } from '../../common/postgres/sql.ts';
import { Feature } from '../../proto/gen/signpost/access/v1/requirements_pb.ts';
import type { Account, Rate } from './caller.ts';
import { BURST_LIMIT, BURST_WINDOW_MS, PLANS } from './plans.ts';
import { MONTH, quotaExhausted, USED } from './usage.ts';

/** An account whose call was judged: admitted, or refused with the error that goes to the caller. */
export interface Judged {
  readonly account: Account;
  readonly rate: Rate;
  readonly refusal?: ReturnType<typeof failure>;
}

interface AccountRow {
  id: string;
  api: boolean;
  bulk: boolean;
  images: boolean;
  monthly_quota: string | null;
  code_limit: string | null;
  batch_limit: number;
  used: string;
  reset: number;
  admitted: boolean;
  /** When the next request fits into the window, in ms from now; 0 when one fits now. */
  burst_wait: string;
  /** In ms since 1970. */
  judged_at: string;
}

/** The plans as rows, so that one statement judges everything. */
const PLAN_ROWS = Object.entries(PLANS)
  .map(
    ([name, plan]) =>
      `('${name}', ${plan.api}, ${plan.bulk}, ${plan.images}, ${plan.monthlyQuota}::bigint, ${plan.codeLimit}::bigint, ${plan.batchLimit})`,
  )
  .join(', ');

/** What the plan gives an account, or its contract instead. `where` picks the account. */
const ACCOUNT = (where: string) => `
  select a.id,
         coalesce(a.feature_api, p.api) as api,
         coalesce(a.feature_bulk, p.bulk) as bulk,
         coalesce(a.feature_images, p.images) as images,
         coalesce(a.monthly_quota, p.quota) as monthly_quota,
         coalesce(a.code_limit, p.codes) as code_limit,
         coalesce(a.batch_limit, p.rows) as batch_limit
  from accounts a
  join (values ${PLAN_ROWS}) as p (name, api, bulk, images, quota, codes, rows) on p.name = a.plan
  ${where}`;

/** The account that the key with the hash $1 opens. */
const OF_KEY = ACCOUNT('join api_keys k on k.account_id = a.id where k.hash = $1 and a.closed_at is null');

/**
 * The place in the ring of the oldest of the last `BURST_LIMIT` admissions, and when that was, in ms since 1970. A meter
 * whose ring was made for another limit may lack places, or its turn may lie beyond the last one.
 */
const PLACE = `((m.turn - 1) % ${BURST_LIMIT} + 1)`;
const OLDEST = `coalesce(m.admissions[${PLACE}], 0)`;

/** How often a request is judged anew because others of its account moved the meter between reading and writing it. */
const MOST_ATTEMPTS = 5;

/** When the next request of `meters m` fits into the window, in ms from now; and when the month ends, in Unix seconds. */
const BURST_WAIT = `greatest(0, ${OLDEST} + ${BURST_WINDOW_MS} - ${CLOCK_MS})`;
const RESET = `extract(epoch from (${MONTH} + interval '1 month') at time zone 'utc')::integer`;

/**
 * Authenticates, judges the plan and meters in one statement: the meter's row lock makes the window and the quota exact
 * over any number of cores, and a request that is refused changes nothing. Indexes: api_keys_hash_key, then primary
 * keys. $1 hash, $2 needs api, $3 needs bulk, $4 needs images, $5 when the caller stops waiting, or null.
 */
const admitKey = promptStatement<AccountRow>(
  'access_admit_key',
  `with account as (${OF_KEY}),
   admitted as (
     update meters m
     set month = ${MONTH},
         used = ${USED} + 1,
         admissions[${PLACE}] = ${CLOCK_MS},
         turn = ${PLACE} % ${BURST_LIMIT} + 1
     from account
     where m.account_id = account.id
       and (account.api or not $2) and (account.bulk or not $3) and (account.images or not $4)
       and ${OLDEST} <= ${CLOCK_MS} - ${BURST_WINDOW_MS}
       and (account.monthly_quota is null or ${USED} < account.monthly_quota)
       and ($5::bigint is null or ${CLOCK_MS} < $5)
     returning m.used
   )
   select account.*,
          coalesce((select used from admitted), ${USED}) as used,
          exists (select from admitted) as admitted,
          ${BURST_WAIT} as burst_wait,
          ${RESET} as reset,
          ${CLOCK_MS} as judged_at
   from account join meters m on m.account_id = account.id`,
);

/** The same judgement without metering: nothing is locked or changed. Indexes: api_keys_hash_key, then primary keys. */
const judgeKey = promptStatement<Omit<AccountRow, 'admitted'>>(
  'access_judge_key',
  `with account as (${OF_KEY})
   select account.*, ${USED} as used, ${BURST_WAIT} as burst_wait, ${RESET} as reset, ${CLOCK_MS} as judged_at
   from account join meters m on m.account_id = account.id`,
);

/** The account that an internal service names. Index: accounts_pkey. */
const findAccount = promptStatement<Omit<AccountRow, 'used' | 'reset' | 'admitted' | 'burst_wait' | 'judged_at'>>(
  'access_find_account',
  ACCOUNT('where a.id = $1 and (a.closed_at is null or $2)'),
);

/**
 * Judges a call by key that needs `features`; undefined when the key is nobody's. The order is the contract's: plan,
 * burst, quota. A call whose `commitBy` has passed is refused as TOO_LATE and not metered. Throws UNAVAILABLE when other requests of the account keep moving the meter, and counts nothing then.
 */
export async function admit(
  pool: Pool,
  keyHash: Buffer,
  features: readonly Feature[],
  commitBy?: number,
): Promise<Judged | undefined> {
  const needs = (feature: Feature) => features.includes(feature);
  const values = [keyHash, needs(Feature.API), needs(Feature.BULK), needs(Feature.IMAGES), commitBy ?? null];
  for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
    const row = await first(pool, admitKey, values);
    if (!row) return undefined;
    const account = accountFrom(row);
    const rate = rateFrom(row);
    if (row.admitted) return { account, rate };
    const late = commitBy !== undefined && Number(row.judged_at) >= commitBy;
    const refusal = late ? tooLate() : (lacking(account, features) ?? overRate(row, rate));
    if (refusal) return { account, rate, refusal };
    // Neither the plan nor the rate refuses the row as it was read: another request has moved it meanwhile.
  }
  throw failure('UNAVAILABLE', 'Too many requests of this account arrive at the same moment; try again.');
}

/** Judges as `admit` does what a call by key would meet now, and meters nothing. */
export async function judgeUnmetered(
  pool: Pool,
  keyHash: Buffer,
  features: readonly Feature[],
): Promise<Judged | undefined> {
  const row = await first(pool, judgeKey, [keyHash]);
  if (!row) return undefined;
  const account = accountFrom(row);
  const rate = rateFrom(row);
  const refusal = lacking(account, features) ?? overRate(row, rate);
  return refusal ? { account, rate, refusal } : { account, rate };
}

/** The account with this UUID, unmetered; undefined when there is none that is open, or closed if `closedToo`. */
export async function accountById(pool: Pool, id: string, closedToo = false): Promise<Account | undefined> {
  const row = await first(pool, findAccount, [id, closedToo]);
  return row && accountFrom(row);
}

/** The error when the account's plan lacks one of the features. */
export function lacking(account: Account, features: readonly Feature[]): Judged['refusal'] {
  if (features.includes(Feature.API) && !account.features.api) {
    return failure('BUSINESS_PLAN_REQUIRED', 'API access belongs to the business plans; this account has none.');
  }
  if (features.includes(Feature.BULK) && !account.features.bulk) {
    return failure('FEATURE_NOT_IN_PLAN', 'Batches are not part of this plan.');
  }
  if (features.includes(Feature.IMAGES) && !account.features.images) {
    return failure('FEATURE_NOT_IN_PLAN', 'Images are not part of this plan.');
  }
  return undefined;
}

function overRate(row: Pick<AccountRow, 'burst_wait'>, rate: Rate): Judged['refusal'] {
  if (row.burst_wait !== '0') {
    const seconds = Math.max(1, Math.ceil(Number(row.burst_wait) / 1_000));
    const message = `More than ${BURST_LIMIT} requests in 60 seconds; try again in ${seconds} s.`;
    return failure('BURST_LIMIT', message, { retry_after: String(seconds) });
  }
  if (rate.limit !== null && rate.used >= rate.limit) return quotaExhausted(rate);
  return undefined;
}

function rateFrom(row: Pick<AccountRow, 'monthly_quota' | 'used' | 'reset' | 'judged_at'>): Rate {
  return {
    limit: row.monthly_quota === null ? null : Number(row.monthly_quota),
    used: Number(row.used),
    reset: row.reset,
    judgedAt: row.judged_at,
  };
}

function accountFrom(row: Omit<AccountRow, 'used' | 'reset' | 'admitted' | 'burst_wait' | 'judged_at'>): Account {
  return {
    id: row.id,
    features: { api: row.api, bulk: row.bulk, images: row.images },
    codeLimit: row.code_limit === null ? null : Number(row.code_limit),
    batchLimit: row.batch_limit,
  };
}

import type { Pool } from 'pg';
import { failure } from '../../common/contract/errors.ts';
import { BURST_LIMIT, BURST_WINDOW_MS } from '../../common/contract/limits.ts';
import { CLOCK_MS, tooLate } from '../../common/postgres/commit-limit.ts';
import { COMMIT_WITHOUT_WAIT, first, promptStatement } from '../../common/postgres/sql.ts';
import { Feature } from '../../proto/gen/signpost/access/v1/requirements_pb.ts';
import type { Account, Rate } from './caller.ts';
import { ACCOUNT, type AccountRow, accountFrom } from './find-account.ts';
import { isStoredKey } from './idempotency/key-records.ts';
import { beyondQuota, MONTH, quotaUsedUp, USED } from './usage.ts';

/** Outcome of admission for a known account: admitted, or rejected with the error for the caller. */
export interface Admission {
  readonly account: Account;
  readonly rate: Rate;
  readonly rejection?: ReturnType<typeof failure>;
}

export interface AdmissionRow extends AccountRow {
  used: string;
  /** The end of the month as Unix time. */
  reset: number;
  admitted: boolean;
  /** Time until the burst window allows the next request, in ms; 0 when it does now. */
  burst_wait: string;
  /** Postgres's clock, in ms since 1970. */
  clock_ms: string;
}

/** The account of the key with the hash $1. */
const OF_KEY = ACCOUNT('join api_keys k on k.account_id = a.id where k.hash = $1 and a.closed_at is null');

/**
 * The slot in the ring of the oldest of the last `BURST_LIMIT` admissions, and its time in ms since 1970. A meter whose
 * ring was created for another limit may have fewer slots, or a `turn` beyond the last one.
 */
const SLOT = `((m.turn - 1) % ${BURST_LIMIT} + 1)`;
const OLDEST = `coalesce(m.admissions[${SLOT}], 0)`;

/** Maximum attempts of a request whose meter other requests change between its read and its update. */
const MAX_ATTEMPTS = 5;

/** For `meters m`: when the burst window allows the next request, when the month ends, and Postgres's clock. */
export const RATE_COLUMNS = `
  greatest(0, ${OLDEST} + ${BURST_WINDOW_MS} - ${CLOCK_MS}) as burst_wait,
  extract(epoch from (${MONTH} + interval '1 month') at time zone 'utc')::integer as reset,
  ${CLOCK_MS} as clock_ms`;

/** What an admission writes into `meters m`. */
export const METERED = `
  month = ${MONTH},
  used = ${USED} + 1,
  admissions[${SLOT}] = ${CLOCK_MS},
  turn = ${SLOT} % ${BURST_LIMIT} + 1`;

/** Whether plan, rate and clock admit a call to `account` with the meter `m`; `asked`: expressions of the call. */
export const ADMISSIBLE = (asked: Record<'api' | 'bulk' | 'images' | 'commitBy', string>) => `
  (account.api or not ${asked.api}) and (account.bulk or not ${asked.bulk}) and (account.images or not ${asked.images})
  and ${OLDEST} <= ${CLOCK_MS} - ${BURST_WINDOW_MS}
  and (account.monthly_quota is null or ${USED} < account.monthly_quota)
  and (${asked.commitBy} is null or ${CLOCK_MS} < ${asked.commitBy})`;

/**
 * Authenticates, checks the plan and meters in one statement: the meter's row lock makes the burst limit and the quota
 * exact across any number of cores, and a rejected request changes nothing. If Postgres's machine loses power, the last
 * admissions are forgotten, except those that the commit of a change followed. Indexes: api_keys_hash_key, then primary
 * keys. $1 hash, $2 needs api, $3 needs bulk, $4 needs images, $5 the caller's deadline in ms since 1970, or null.
 */
const admitKey = promptStatement<AdmissionRow>(
  'access_admit_key',
  `with account as (${OF_KEY}),
   admitted as (
     update meters m set ${METERED}
     from account
     where m.account_id = account.id
       and ${ADMISSIBLE({ api: '$2', bulk: '$3', images: '$4', commitBy: '$5::bigint' })}
     returning m.used
   )
   select account.*,
          coalesce((select used from admitted), ${USED}) as used,
          exists (select from admitted) as admitted,
          ${COMMIT_WITHOUT_WAIT},
          ${RATE_COLUMNS}
   from account join meters m on m.account_id = account.id`,
);

/** The same check without metering: nothing is locked or changed. Indexes: api_keys_hash_key, then primary keys. */
const checkKey = promptStatement<Omit<AdmissionRow, 'admitted'>>(
  'access_check_key',
  `with account as (${OF_KEY})
   select account.*, ${USED} as used, ${RATE_COLUMNS}
   from account join meters m on m.account_id = account.id`,
);

/**
 * Checks and meters a call by API key that needs `features`; undefined when the key is invalid. In the contract's
 * order: plan, burst, quota. A call whose `commitBy` has passed is rejected as TOO_LATE and not metered. Throws
 * UNAVAILABLE, and counts nothing, when other requests of the account keep changing the meter.
 */
export async function admit(
  pool: Pool,
  keyHash: Buffer,
  features: readonly Feature[],
  commitBy?: number,
): Promise<Admission | undefined> {
  const values = parametersOf({ keyHash, features, commitBy });
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const row = await first(pool, admitKey, values);
    if (!row) return undefined;
    const admission = admissionFrom(row, features, commitBy);
    if (admission) return admission;
  }
  throw failure('UNAVAILABLE', 'Too many concurrent requests of this account; try again.');
}

/** A call by API key, as it is admitted. */
export interface KeyCall {
  readonly keyHash: Buffer;
  readonly features: readonly Feature[];
  readonly commitBy: number | undefined;
}

/** The parameters of `admitKey`. */
export function parametersOf({ keyHash, features, commitBy }: KeyCall) {
  const needs = (feature: Feature) => features.includes(feature);
  return [keyHash, needs(Feature.API), needs(Feature.BULK), needs(Feature.IMAGES), commitBy ?? null] as const;
}

/**
 * The outcome of an admission. Undefined if the call was not admitted and neither the plan nor the rate rejects the row
 * as it was read: another call holds the meter, or has changed it meanwhile.
 */
export function admissionFrom(
  row: AdmissionRow,
  features: readonly Feature[],
  commitBy: number | undefined,
): Admission | undefined {
  const account = accountFrom(row);
  const rate = rateFrom(row);
  if (row.admitted) return { account, rate };
  const late = commitBy !== undefined && Number(row.clock_ms) >= commitBy;
  const rejection = late ? tooLate() : (missingFeature(account, features) ?? overRate(row, rate));
  return rejection && { account, rate, rejection };
}

/** Checks a call by API key as `admit` does, without metering it. */
export async function checkUnmetered(
  pool: Pool,
  keyHash: Buffer,
  features: readonly Feature[],
): Promise<Admission | undefined> {
  const row = await first(pool, checkKey, [keyHash]);
  if (!row) return undefined;
  const account = accountFrom(row);
  const rate = rateFrom(row);
  const rejection = missingFeature(account, features) ?? overRate(row, rate);
  return rejection ? { account, rate, rejection } : { account, rate };
}

/**
 * Rejects a call that costs more requests than are left, before it is admitted: until it was refunded, other calls
 * would lack its request, and its place among those of the last minute is not given back. Undefined for other calls,
 * and if an answer is stored under the call's idempotency key, as a replay costs one request.
 */
export async function rejectBeyondQuota(
  pool: Pool,
  keyHash: Buffer,
  features: readonly Feature[],
  { cost, idempotencyKey }: { readonly cost: number; readonly idempotencyKey: string | null },
): Promise<Admission | undefined> {
  if (cost <= 1) return undefined;
  const checked = await checkUnmetered(pool, keyHash, features);
  if (!checked || checked.rejection) return undefined;
  const ifAdmitted = { ...checked.rate, used: checked.rate.used + 1 };
  const rejection = beyondQuota(ifAdmitted, cost - 1);
  if (!rejection) return undefined;
  if (idempotencyKey !== null && (await isStoredKey(pool, checked.account.id, idempotencyKey))) return undefined;
  return { ...checked, rejection };
}

/** The error if the account's plan lacks one of the features. */
export function missingFeature(account: Account, features: readonly Feature[]): Admission['rejection'] {
  if (features.includes(Feature.API) && !account.features.api) {
    return failure('BUSINESS_PLAN_REQUIRED', 'API access requires a business plan.');
  }
  if (features.includes(Feature.BULK) && !account.features.bulk) {
    return failure('FEATURE_NOT_IN_PLAN', 'Batches are not part of this plan.');
  }
  if (features.includes(Feature.IMAGES) && !account.features.images) {
    return failure('FEATURE_NOT_IN_PLAN', 'Images are not part of this plan.');
  }
  return undefined;
}

function overRate(row: Pick<AdmissionRow, 'burst_wait'>, rate: Rate): Admission['rejection'] {
  if (row.burst_wait !== '0') {
    const seconds = Math.max(1, Math.ceil(Number(row.burst_wait) / 1_000));
    const message = `More than ${BURST_LIMIT} requests in 60 seconds; try again in ${seconds} s.`;
    return failure('BURST_LIMIT', message, { retry_after: String(seconds) });
  }
  if (rate.limit !== null && rate.used >= rate.limit) return quotaUsedUp(rate);
  return undefined;
}

function rateFrom(row: Pick<AdmissionRow, 'monthly_quota' | 'used' | 'reset' | 'clock_ms'>): Rate {
  return {
    limit: row.monthly_quota === null ? null : Number(row.monthly_quota),
    used: Number(row.used),
    reset: row.reset,
    clock: row.clock_ms,
  };
}

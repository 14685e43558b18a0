import type { HandlerContext } from '@connectrpc/connect';
import type { Pool } from 'pg';
import { failure, readFailure } from '../../common/contract/errors.ts';
import { first, type Queryable, run, statement } from '../../common/postgres/sql.ts';
import { callerKey, type Rate } from './caller.ts';

/**
 * The current month, and the requests of `meters m` in it. Not by `now()`: a call whose transaction began before the
 * end of a month, and took or waited until after it, would set the meter back and so forget the requests of the new
 * month.
 */
export const MONTH = `date_trunc('month', clock_timestamp() at time zone 'utc')::date`;
export const USED = `case when m.month = ${MONTH} then m.used else 0 end`;

/** Usage of an account. */
export interface Used {
  /** Requests in the current month. */
  readonly requests: number;
  /** Dynamic codes that are not deleted. */
  readonly codes: number;
}

/** Indexes: meters_pkey, code_counts_pkey. */
const read = statement<{ requests: string; codes: string }>(
  'access_usage',
  `select ${USED} as requests, c.live as codes
   from meters m join code_counts c using (account_id) where account_id = $1`,
);

/** Usage of the account with this UUID. */
export async function usageOf(pool: Pool, accountId: string): Promise<Used> {
  const row = await first(pool, read, [accountId]);
  return { requests: Number(row?.requests ?? 0), codes: Number(row?.codes ?? 0) };
}

const open = statement(
  'access_open_meters',
  'with meter as (insert into meters (account_id) values ($1)) insert into code_counts (account_id) values ($1)',
);

/** Creates the counters of a new account; without them no key of the account is admitted. */
export async function openMeters(on: Queryable, accountId: string): Promise<void> {
  await run(on, open, [accountId]);
}

/** Index: meters_pkey. Locks the meter until the transaction ends, so it must be the last statement. */
const charge = statement<{ used: string }>(
  'access_charge',
  `update meters m set month = ${MONTH}, used = ${USED} + $2
   where account_id = $1 and ($3::bigint is null or ${USED} + $2 <= $3)
   returning used`,
);

/** Source: docs/contract.md, "Limits". */
const ROWS_A_REQUEST = 100;

/** What a call with this many rows costs, in requests. */
export function costOfRows(rows: number): number {
  return Math.ceil(rows / ROWS_A_REQUEST);
}

/** The 429 of a call that costs `requests` beyond the one of its admission, if fewer are left this month. */
export function beyondQuota(rate: Rate, requests: number): ReturnType<typeof costExceedsQuota> | undefined {
  if (rate.limit === null || rate.used + requests <= rate.limit) return undefined;
  return costExceedsQuota(rate, requests + 1);
}

/** Fails when the account has fewer requests left this month; an early check that reserves nothing. */
export function expectQuota(context: HandlerContext, requests: number): void {
  const caller = context.values.get(callerKey);
  if (caller.kind !== 'key') return;
  const rejection = beyondQuota(caller.rate, requests);
  if (rejection) throw rejection;
}

/**
 * Charges a call by API key for further requests beyond the one of its admission, at the end of the transaction that it
 * pays for. Fails with QUOTA_EXHAUSTED when fewer are left.
 */
export async function chargeQuota(tx: Queryable, context: HandlerContext, requests: number): Promise<void> {
  const caller = context.values.get(callerKey);
  if (caller.kind !== 'key' || requests === 0) return;
  const { account, rate } = caller;
  const charged = await first(tx, charge, [account.id, requests, rate.limit]);
  if (charged) {
    rate.used = Number(charged.used);
    return;
  }
  // Calls that ran beside this one may have been charged since its admission.
  rate.used = Number((await first(tx, read, [account.id]))?.requests ?? rate.used);
  throw costExceedsQuota(rate, requests + 1);
}

/** Index: meters_pkey. */
const refund = statement<{ used: string }>(
  'access_refund',
  `update meters m set used = used - 1 where account_id = $1 and month = ${MONTH} and used > 0 returning used`,
);

/** Returns the request of the call's admission to the quota: for a call that is rejected because of its own cost. */
async function refundQuota(on: Queryable, context: HandlerContext): Promise<void> {
  const caller = context.values.get(callerKey);
  if (caller.kind !== 'key') return;
  const refunded = await first(on, refund, [caller.account.id]);
  if (refunded) caller.rate.used = Number(refunded.used);
}

/** Refunds a call that failed because of its own cost: a 429 costs nothing, not even the request of its admission. */
export function refundIfExhausted<Result>(
  on: Queryable,
  context: HandlerContext,
  call: Promise<Result>,
): Promise<Result> {
  return call.catch(async (error: unknown) => {
    if (readFailure(error).reason === 'QUOTA_EXHAUSTED') await refundQuota(on, context);
    throw error;
  });
}

/** The 429 of an account that has used up its month. */
export function quotaUsedUp({ limit, reset }: Rate) {
  return failure('QUOTA_EXHAUSTED', `The ${limit} requests of this month are used up; ${nextMonth(reset)}`);
}

/** The 429 of a call that costs `cost` requests, more than are left, not counting its admission, which is refunded. */
function costExceedsQuota({ limit, used, reset }: Rate, cost: number) {
  const remaining = Math.max(0, Number(limit) - used + 1);
  const left = `${remaining} of the ${limit} requests of this month remain`;
  return failure('QUOTA_EXHAUSTED', `This call costs ${cost} requests, but ${left}; ${nextMonth(reset)}`);
}

function nextMonth(reset: number): string {
  return `the next month begins on ${new Date(reset * 1_000).toISOString().slice(0, 10)}.`;
}

import type { Pool } from 'pg';
import { promptStatement, run, statement } from '../../../common/postgres/sql.ts';

// Endpoints that are failing, or have never responded successfully, could be used to flood a third party's host. So an
// account has a budget of attempts to such endpoints for each host: a burst of as many as it may have endpoints, then
// two a minute. Successful attempts are refunded. The generic cell rate algorithm needs one column for each budget: the
// time at which it will be full again.

/** Most attempts in a budget. */
const BURST = 50;
/** Seconds in which a budget regains one attempt. */
const REFILL_S = 30;
const REFILL = `interval '${REFILL_S} s'`;

/** Identifies a budget. `account`: UUID; `host`: host name or IP address of the URL. */
export interface BudgetKey {
  readonly account: string;
  readonly host: string;
}

/** A number of attempts of one budget. */
export interface Attempts extends BudgetKey {
  readonly attempts: number;
}

/** A budget as the key of a map. */
export function keyText({ account, host }: BudgetKey): string {
  return `${account} ${host}`;
}

/** Counts how often each budget occurs. */
export function attemptsPerBudget(budgets: readonly BudgetKey[]): Attempts[] {
  return [...Map.groupBy(budgets, keyText).values()].flatMap((same) =>
    same.slice(0, 1).map(({ account, host }) => ({ account, host, attempts: same.length })),
  );
}

/** The answer to a request for attempts. */
export interface Grant extends BudgetKey {
  /** As many attempts as were requested, or fewer. */
  readonly granted: number;
  /** ms until the budget has another attempt. */
  readonly wait: number;
}

/**
 * Attempts left in the budget of row `b`. Not less than 0: `now()` is the start of the transaction, and one that began
 * later may have spent the whole budget already.
 */
const REMAINING = `greatest(0, floor(${BURST} - greatest(extract(epoch from b.spent_until - now()), 0) / ${REFILL_S}))`;

/** Index: webhook_attempt_budgets_pkey. The order of the rows prevents deadlocks. */
const spend = promptStatement<Grant>(
  'webhooks_spend_budgets',
  `insert into webhook_attempt_budgets as b (account_id, host, spent_until)
   select account_id, host, now() + least(attempts, ${BURST}) * ${REFILL}
   from unnest($1::uuid[], $2::text[], $3::integer[]) as requested (account_id, host, attempts) order by 1, 2
   on conflict (account_id, host) do update
   set spent_until = greatest(b.spent_until, now()) + least(excluded.spent_until - now(), ${REMAINING} * ${REFILL})
   returning account_id as account, host,
     round(extract(epoch from new.spent_until - greatest(old.spent_until, now())) / ${REFILL_S})::integer as granted,
     (extract(epoch from new.spent_until - now() - ${BURST - 1} * ${REFILL}) * 1000)::float8 as wait`,
);

/** Index: webhook_attempt_budgets_pkey. Locks in the same order. */
const refund = promptStatement(
  'webhooks_refund_budgets',
  `with refund as (
     select account_id, host, attempts
     from webhook_attempt_budgets
     join unnest($1::uuid[], $2::text[], $3::integer[]) as refunds (account_id, host, attempts) using (account_id, host)
     order by account_id, host for update of webhook_attempt_budgets
   )
   update webhook_attempt_budgets b set spent_until = b.spent_until - refund.attempts * ${REFILL}
   from refund where b.account_id = refund.account_id and b.host = refund.host`,
);

/** Scans the whole table, once an hour: it has rows only for hosts that failed recently. */
const deleteFull = statement(
  'webhooks_delete_full_budgets',
  'delete from webhook_attempt_budgets where spent_until < now()',
);

/** Takes attempts from budgets, as far as they have any left. The keys must be distinct. */
export function spendBudgets(pool: Pool, requested: readonly Attempts[]): Promise<Grant[]> {
  return run(pool, spend, columns(requested));
}

/** Returns attempts to their budgets. The keys must be distinct. */
export async function refundBudgets(pool: Pool, attempts: readonly Attempts[]): Promise<void> {
  await run(pool, refund, columns(attempts));
}

/** Deletes full budgets: a budget without a row is full. */
export async function deleteFullBudgets(pool: Pool): Promise<void> {
  await run(pool, deleteFull);
}

function columns(attempts: readonly Attempts[]): unknown[] {
  return [
    attempts.map(({ account }) => account),
    attempts.map(({ host }) => host),
    attempts.map((each) => each.attempts),
  ];
}

import type { Pool } from 'pg';
import { run, statement } from '../../common/postgres/sql.ts';

// Endpoints that fail, or have never answered, could be used to flood whomever their addresses name. So an account has a
// budget of attempts to such endpoints for each host: as many at once as it may have endpoints, then two a minute. An
// attempt that succeeds is paid back. One column is all that a budget takes (the generic cell rate algorithm): the time
// until which it is spent.

/** Attempts that a budget has at most. */
const BURST = 50;
/** Seconds until a budget has one attempt more. */
const REFILL_S = 30;
const REFILL = `interval '${REFILL_S} s'`;

/** Whose budget; `account` is a UUID. */
export interface BudgetKey {
  readonly account: string;
  readonly host: string;
}

/** Attempts of a budget. */
export interface Attempts extends BudgetKey {
  readonly attempts: number;
}

/** What was asked of a budget. */
export interface Grant extends BudgetKey {
  /** As many as were asked for, or fewer. */
  readonly granted: number;
  /** ms until it has another one. */
  readonly wait: number;
}

/** What a budget has left, of `b`, a row of it. */
const LEFT = `floor(${BURST} - greatest(extract(epoch from b.spent_until - now()), 0) / ${REFILL_S})`;

/** Index: webhook_attempt_budgets_pkey. In one order, so that nobody waits for anybody who waits. */
const spend = statement<Grant>(
  'webhooks_spend_budgets',
  `insert into webhook_attempt_budgets as b (account_id, host, spent_until)
   select account_id, host, now() + least(attempts, ${BURST}) * ${REFILL}
   from unnest($1::uuid[], $2::text[], $3::integer[]) as asked (account_id, host, attempts) order by 1, 2
   on conflict (account_id, host) do update
   set spent_until = greatest(b.spent_until, now()) + least(excluded.spent_until - now(), ${LEFT} * ${REFILL})
   returning account_id as account, host,
     round(extract(epoch from new.spent_until - greatest(old.spent_until, now())) / ${REFILL_S})::integer as granted,
     (extract(epoch from new.spent_until - now() - ${BURST - 1} * ${REFILL}) * 1000)::float8 as wait`,
);

/** Index: webhook_attempt_budgets_pkey. In the same order. */
const payBack = statement(
  'webhooks_pay_back_budgets',
  `with paid as (
     select account_id, host, attempts
     from webhook_attempt_budgets
     join unnest($1::uuid[], $2::text[], $3::integer[]) as told (account_id, host, attempts) using (account_id, host)
     order by account_id, host for update of webhook_attempt_budgets
   )
   update webhook_attempt_budgets b set spent_until = b.spent_until - paid.attempts * ${REFILL}
   from paid where b.account_id = paid.account_id and b.host = paid.host`,
);

/** All of them are looked at, once an hour: there are only those of hosts that failed lately. */
const forgetFull = statement(
  'webhooks_forget_full_budgets',
  'delete from webhook_attempt_budgets where spent_until < now()',
);

/** Takes attempts from budgets, as far as they have any. Each key once. */
export function spendBudgets(pool: Pool, asked: readonly Attempts[]): Promise<Grant[]> {
  return run(pool, spend, columns(asked));
}

/** Pays attempts back. Each key once. */
export async function payBackBudgets(pool: Pool, attempts: readonly Attempts[]): Promise<void> {
  await run(pool, payBack, columns(attempts));
}

/** Forgets budgets that nothing is spent of: a budget that does not exist is full. */
export async function forgetFullBudgets(pool: Pool): Promise<void> {
  await run(pool, forgetFull);
}

function columns(attempts: readonly Attempts[]): unknown[] {
  return [
    attempts.map(({ account }) => account),
    attempts.map(({ host }) => host),
    attempts.map((each) => each.attempts),
  ];
}

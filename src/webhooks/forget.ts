import type { Pool } from 'pg';
import { run, statement } from '../../common/postgres/sql.ts';

/**
 * Indexes: webhook_endpoints_of_account; the deliveries and attempts go by their foreign keys. Locked in the order in
 * which those who deliver lock them.
 */
const forget = statement(
  'webhooks_forget',
  `delete from webhook_endpoints e
   using (select id from webhook_endpoints where account_id = $1 order by id for update) theirs where e.id = theirs.id`,
);

/** Index: webhook_attempt_budgets_pkey. */
const forgetBudgets = statement('webhooks_forget_budgets', 'delete from webhook_attempt_budgets where account_id = $1');

/** Forgets all endpoints of an account with their deliveries. `accountId`: UUID. */
export async function forgetEndpoints(pool: Pool, accountId: string): Promise<void> {
  await run(pool, forget, [accountId]);
  await run(pool, forgetBudgets, [accountId]);
}

import type { Pool } from 'pg';
import { run, statement } from '../../../common/postgres/sql.ts';

/**
 * Index: webhook_endpoints_of_account. Foreign keys delete the deliveries and attempts. Endpoints are locked in the
 * order in which deliverers lock them.
 */
const deleteAll = statement(
  'webhooks_delete_endpoints',
  `delete from webhook_endpoints e
   using (select id from webhook_endpoints where account_id = $1 order by id for update) locked where e.id = locked.id`,
);

/** Index: webhook_attempt_budgets_pkey. */
const deleteBudgets = statement('webhooks_delete_budgets', 'delete from webhook_attempt_budgets where account_id = $1');

/** Deletes all endpoints of a closed account with their deliveries and budgets. `accountId`: UUID. */
export async function deleteEndpoints(pool: Pool, accountId: string): Promise<void> {
  await run(pool, deleteAll, [accountId]);
  await run(pool, deleteBudgets, [accountId]);
}

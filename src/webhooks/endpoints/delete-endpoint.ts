import type { Pool } from 'pg';
import { byIndex, first, type Queryable, run, statement, transactionWithin } from '../../../common/postgres/sql.ts';
import { LONG_MS } from '../sending/endpoint-leases.ts';
import { lockEndpointRow } from './endpoints.ts';

/**
 * Deliveries deleted in one transaction, which takes 0.2 s with ten attempts each. It locks the endpoint: until it is
 * marked, events of all accounts wait for that.
 */
const MAX_DELETED = 5_000;

/**
 * Foreign keys delete the attempts. Upkeep may delete deliveries that were chosen. Indexes:
 * webhook_deliveries_endpoint_id_event_id_key, webhook_deliveries_pkey, webhook_endpoints_pkey, forced by `byIndex`. By
 * id, those of all endpoints could be read.
 */
const deleteDeliveries = statement<{ more: boolean }>(
  'webhooks_delete_deliveries',
  `with chosen as materialized (
     select id from webhook_deliveries where endpoint_id = $1 order by event_id limit ${MAX_DELETED}
   ), gone as (
     delete from webhook_deliveries where id = any(array(select id from chosen))
   )
   update webhook_endpoints
   set deleted = true, disabled_reason = 'It was deleted.', due_at = null, leased_by = null, leased_until = null
   where id = $1 returning (select count(*) = ${MAX_DELETED} from chosen) as more`,
);

/** Index: webhook_endpoints_pkey. */
const deleteRow = statement('webhooks_delete_endpoint', 'delete from webhook_endpoints where id = $1');

/** Index: webhook_endpoints_of_account. */
const ofAccount = statement<{ id: string }>(
  'webhooks_endpoints_of_account',
  'select id from webhook_endpoints where account_id = $1',
);

/** Index: webhook_attempt_budgets_pkey. */
const deleteBudgets = statement('webhooks_delete_budgets', 'delete from webhook_attempt_budgets where account_id = $1');

/**
 * Deletes an endpoint, which the transaction has locked, with up to 5,000 of its deliveries. If more may be left, it is
 * only marked: nothing is sent to it, no call finds it, and `finishEndpoints` continues. Returns whether more may be
 * left.
 */
export async function deleteEndpoint(tx: Queryable, id: string): Promise<boolean> {
  await run(tx, byIndex);
  if ((await first(tx, deleteDeliveries, [id]))?.more) return true;
  await run(tx, deleteRow, [id]);
  return false;
}

/** Deletes all endpoints of a closed account with their deliveries and budgets. `accountId`: UUID. */
export async function deleteAccountEndpoints(pool: Pool, accountId: string): Promise<void> {
  const left = () => run(pool, ofAccount, [accountId]);
  for (let endpoints = await left(); endpoints.length > 0; endpoints = await left()) {
    for (const { id } of endpoints) {
      await transactionWithin(pool, LONG_MS, async (tx) => {
        await lockEndpointRow(tx, accountId, id);
        await deleteEndpoint(tx, id);
      });
    }
  }
  await run(pool, deleteBudgets, [accountId]);
}

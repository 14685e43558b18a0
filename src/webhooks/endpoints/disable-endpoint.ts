import { byIndex, first, type Queryable, run, statement } from '../../../common/postgres/sql.ts';

/**
 * Deliveries that fail in one transaction, which takes 0.1 s: it locks the endpoint, for which events of all accounts
 * wait.
 */
const MAX_FAILED = 5_000;

/** Index: webhook_endpoints_pkey. */
const disable = statement<{ id: string }>(
  'webhooks_disable_endpoint',
  `update webhook_endpoints set disabled_reason = $3, due_at = null, leased_by = null, leased_until = null
   where id = $1 and account_id = $2 and url = coalesce($4, url) and disabled_reason is null returning id`,
);

/**
 * Indexes: webhook_deliveries_due, webhook_deliveries_pkey, webhook_endpoints_pkey, forced by `byIndex`: while
 * statistics know of few deliveries of the endpoint, all would be sorted.
 */
const fail = statement<{ more: boolean }>(
  'webhooks_fail_pending',
  `with failed as (
     update webhook_deliveries set status = 'failed', next_attempt_at = null
     where id = any(array(
       select id from webhook_deliveries where endpoint_id = $1 and status = 'pending'
       order by next_attempt_at limit ${MAX_FAILED}
     ))
     returning id
   )
   update webhook_endpoints set fails_pending = (select count(*) = ${MAX_FAILED} from failed)
   where id = $1 returning fails_pending as more`,
);

/**
 * Disables an endpoint, and fails its pending deliveries: the first 5,000 at once, and the others by `finishEndpoints`.
 * They can be resent later. Returns false if it was disabled already, or if it no longer has the URL `onlyAt`.
 */
export async function disableEndpoint(
  tx: Queryable,
  { id, accountId, reason, onlyAt }: { id: string; accountId: string; reason: string; onlyAt?: string },
): Promise<boolean> {
  if ((await first(tx, disable, [id, accountId, reason, onlyAt ?? null])) === undefined) return false;
  // A statement of its own: the first one may have waited for a lock, with a snapshot older than deliveries added
  // meanwhile.
  await failPending(tx, id);
  return true;
}

/**
 * Fails up to 5,000 pending deliveries of an endpoint, which the transaction has locked. Returns whether more may be
 * left.
 */
export async function failPending(tx: Queryable, id: string): Promise<boolean> {
  await run(tx, byIndex);
  return (await first(tx, fail, [id]))?.more ?? false;
}

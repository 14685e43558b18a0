import type { Pool } from 'pg';
import { first, type Queryable, run, statement, transactionWithin } from '../../../common/postgres/sql.ts';
import { LONG_MS } from '../sending/queue.ts';

/** Deliveries that fail in one transaction, which takes 0.1 s: it locks the endpoint, for which events of all accounts wait. */
const MAX_FAILED = 5_000;

/** Index: webhook_endpoints_pkey. */
const disable = statement<{ id: string }>(
  'webhooks_disable_endpoint',
  `update webhook_endpoints set disabled_reason = $3, due_at = null, leased_by = null, leased_until = null
   where id = $1 and account_id = $2 and url = coalesce($4, url) and disabled_reason is null returning id`,
);

/** Indexes: webhook_deliveries_due, webhook_deliveries_pkey, webhook_endpoints_pkey. The caller has locked the endpoint. */
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

/** Index: webhook_endpoints_fail_pending. */
const unfinished = statement<{ id: string }>(
  'webhooks_fail_pending_of',
  'select id from webhook_endpoints where fails_pending and disabled_reason is not null',
);

/** Index: webhook_endpoints_pkey. Finds nothing while another process works on the endpoint. */
const lockUnfinished = statement<{ id: string }>(
  'webhooks_lock_fail_pending',
  `select id from webhook_endpoints where id = $1 and fails_pending and disabled_reason is not null
   for no key update skip locked`,
);

/**
 * Disables an endpoint, and fails its pending deliveries: the first 5,000 at once, and the others by `failRemaining`. They can
 * be resent later. Returns false if it was disabled already, or if it no longer has the URL `onlyAt`.
 */
export async function disableEndpoint(
  tx: Queryable,
  { id, accountId, reason, onlyAt }: { id: string; accountId: string; reason: string; onlyAt?: string },
): Promise<boolean> {
  if ((await first(tx, disable, [id, accountId, reason, onlyAt ?? null])) === undefined) return false;
  // A statement of its own: the first one may have waited for a lock, with a snapshot older than deliveries added meanwhile.
  await failPending(tx, id);
  return true;
}

/** Fails up to 5,000 pending deliveries of an endpoint, which the transaction has locked. Returns whether more may be left. */
export async function failPending(tx: Queryable, id: string): Promise<boolean> {
  return (await first(tx, fail, [id]))?.more ?? false;
}

/** Fails what is left of the pending deliveries of disabled endpoints. Any number of processes may run it at once. */
export async function failRemaining(pool: Pool, stopping: AbortSignal): Promise<void> {
  let left = await run(pool, unfinished);
  while (left.length > 0 && !stopping.aborted) {
    const more: typeof left = [];
    for (const endpoint of left) if (!stopping.aborted && (await failNext(pool, endpoint.id))) more.push(endpoint);
    left = more;
  }
}

function failNext(pool: Pool, id: string): Promise<boolean> {
  return transactionWithin(pool, LONG_MS, async (tx) => {
    const locked = await first(tx, lockUnfinished, [id]);
    return locked !== undefined && failPending(tx, id);
  });
}

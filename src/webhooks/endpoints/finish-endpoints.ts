import type { Pool } from 'pg';
import { first, run, statement, transactionWithin } from '../../../common/postgres/sql.ts';
import { attemptEach } from '../../../common/runtime/attempt-each.ts';
import { LONG_MS } from '../sending/endpoint-leases.ts';
import { deleteEndpoint } from './delete-endpoint.ts';
import { failPending } from './disable-endpoint.ts';

/** Selects disabled or deleted endpoints that may still have deliveries. */
const UNFINISHED = '(fails_pending and disabled_reason is not null or deleted)';

/** Index: webhook_endpoints_unfinished. */
const unfinished = statement<{ id: string }>(
  'webhooks_unfinished_endpoints',
  `select id from webhook_endpoints where ${UNFINISHED}`,
);

/** Index: webhook_endpoints_pkey. Finds nothing while another process works on the endpoint. */
const lockUnfinished = statement<{ deleted: boolean }>(
  'webhooks_lock_unfinished_endpoint',
  `select deleted from webhook_endpoints where id = $1 and ${UNFINISHED} for no key update skip locked`,
);

/**
 * Fails what is left of the pending deliveries of disabled endpoints, and deletes what is left of deleted ones; rejects
 * with the first failure, after a step for each of the others. Any number of processes may run it at once.
 */
export async function finishEndpoints(pool: Pool, stopping: AbortSignal): Promise<void> {
  let left = await run(pool, unfinished);
  while (left.length > 0 && !stopping.aborted) {
    const more: typeof left = [];
    await attemptEach(left, async (endpoint) => {
      if (!stopping.aborted && (await continueWith(pool, endpoint.id))) more.push(endpoint);
    });
    left = more;
  }
}

/** Returns whether more may be left. */
function continueWith(pool: Pool, id: string): Promise<boolean> {
  return transactionWithin(pool, LONG_MS, async (tx) => {
    const locked = await first(tx, lockUnfinished, [id]);
    if (!locked) return false;
    return locked.deleted ? deleteEndpoint(tx, id) : failPending(tx, id);
  });
}

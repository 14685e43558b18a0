import type { Pool } from 'pg';
import type { Logger } from 'pino';
import { encodeId } from '../../../common/contract/ids.ts';
import { first, type Queryable, run, statement, transactionWithin } from '../../../common/postgres/sql.ts';
import { recordOwnChange } from '../../access/audit.ts';
import { disableEndpoint } from '../endpoints/disable-endpoint.ts';
import { DISABLE_REASONS } from '../endpoints/disable-reasons.ts';
import { TEST_EVENT } from '../entities.ts';
import { type LeasedEndpointRow, LONG_MS } from './endpoint-leases.ts';
import type { DeliveryResult } from './queue.ts';
import { DISABLE_AFTER_MS } from './schedule.ts';

const GONE = 410;

/** Indexes: webhook_deliveries_due, webhook_deliveries_tests. */
const IS_IDLE = `disabled_reason is null and case
    when verified_at is null then not exists (
      select from webhook_deliveries d
      where d.endpoint_id = e.id and d.status = 'pending' and d.event_type = '${TEST_EVENT}'
    )
    when failing_since < now() - $1 * interval '1 ms' then not exists (
      select from webhook_deliveries d where d.endpoint_id = e.id and d.status = 'pending'
    )
  end`;

/** Scans all endpoints, once an hour. */
const idle = statement<Pick<LeasedEndpointRow, 'id' | 'account_id' | 'url' | 'verified_at'>>(
  'webhooks_idle',
  `select id, account_id, url, verified_at from webhook_endpoints e where ${IS_IDLE}`,
);

/** What decides whether an endpoint is disabled. */
export type EndpointState = Pick<LeasedEndpointRow, 'url' | 'verified_at' | 'failing_ms'>;

/** Index: webhook_endpoints_pkey. */
const lock = statement<EndpointState>(
  'webhooks_lock_and_read',
  `select url, verified_at, (extract(epoch from now() - failing_since) * 1000)::float8 as failing_ms
   from webhook_endpoints where id = $1 for no key update`,
);

/** Index: webhook_endpoints_pkey. */
const stillIdle = statement('webhooks_still_idle', `select from webhook_endpoints e where id = $2 and ${IS_IDLE}`);

/** Locks an endpoint until the transaction ends, and reads its state. `id`: UUID. */
export function lockEndpointState(tx: Queryable, id: string): Promise<EndpointState | undefined> {
  return first(tx, lock, [id]);
}

/**
 * The reason to disable an endpoint after the given results, for its owner; undefined to leave it enabled. Of an
 * unverified one, only results of its test events count. Source: docs/contract.md, "Events".
 */
export function reasonToDisable(
  { verified_at, failing_ms }: Pick<LeasedEndpointRow, 'verified_at' | 'failing_ms'>,
  results: readonly Pick<DeliveryResult, 'status' | 'newStatus'>[],
): string | undefined {
  if (results.some(({ status }) => status === GONE)) return DISABLE_REASONS.gone;
  // Nothing but test events is sent to it, so its other deliveries would stay pending for ever.
  if (verified_at === null && results.some(({ newStatus }) => newStatus === 'failed'))
    return DISABLE_REASONS.testFailed;
  if (failing_ms === null || failing_ms < DISABLE_AFTER_MS) return undefined;
  return DISABLE_REASONS.failedForDays;
}

/**
 * Disables an endpoint for what happened at its URL, and records that in the account's audit log. Returns false, and
 * does nothing, if it is disabled already or has another URL meanwhile, or if `applies` returns false in the
 * transaction.
 */
export async function disableAndAudit(
  pool: Pool,
  { id, account_id: accountId, url }: Pick<LeasedEndpointRow, 'id' | 'account_id' | 'url'>,
  reason: string,
  logger: Logger,
  applies: (tx: Queryable) => Promise<boolean> = async () => true,
): Promise<boolean> {
  const endpoint = encodeId('hook', id);
  const disabled = await transactionWithin(pool, LONG_MS, async (tx) => {
    if (!(await applies(tx))) return false;
    if (!(await disableEndpoint(tx, { id, accountId, reason, onlyAt: url }))) return false;
    await recordOwnChange(tx, accountId, 'endpoint disabled', endpoint);
    return true;
  });
  if (disabled) logger.info({ endpoint, reason }, 'a webhook endpoint was disabled');
  return disabled;
}

/**
 * Disables the endpoints that no attempt will disable, as none is made: those whose test event failed, but whose
 * process died before it disabled them, and those that have failed for five days and get no more events. Ends early
 * once `stopping` is aborted.
 */
export async function disableIdle(pool: Pool, logger: Logger, stopping?: AbortSignal): Promise<void> {
  for (const row of await run(pool, idle, [DISABLE_AFTER_MS])) {
    if (stopping?.aborted) return;
    await disableAndAudit(
      pool,
      row,
      row.verified_at === null ? DISABLE_REASONS.testFailed : DISABLE_REASONS.failedForDays,
      logger,
      // It may have been enabled or tested again since it was listed.
      async (tx) => {
        await lockEndpointState(tx, row.id);
        return (await run(tx, stillIdle, [DISABLE_AFTER_MS, row.id])).length > 0;
      },
    );
  }
}

import type { Pool } from 'pg';
import { encodeId } from '../../common/contract/ids.ts';
import { transaction } from '../../common/postgres/sql.ts';
import { recordOwnChange } from '../access/audit.ts';
import { disableEndpoint } from './endpoints.ts';
import type { DeliveryResult, LeasedEndpointRow } from './queue.ts';
import { DISABLE_AFTER_MS } from './schedule.ts';

const GONE = 410;

/**
 * The reason to disable an endpoint after the given results, for its owner; undefined to leave it enabled. Source:
 * docs/contract.md, "Events".
 */
export function reasonToDisable(
  { verified_at, failing_since }: Pick<LeasedEndpointRow, 'verified_at' | 'failing_since'>,
  results: readonly Pick<DeliveryResult, 'status' | 'newStatus'>[],
): string | undefined {
  if (results.some(({ status }) => status === GONE)) return 'It answered 410 Gone.';
  // Nothing but test events is sent to it, so its other deliveries would stay pending for ever.
  if (verified_at === null && results.some(({ newStatus }) => newStatus === 'failed')) return 'Its test event failed.';
  if (failing_since === null || Date.now() - failing_since.getTime() < DISABLE_AFTER_MS) return undefined;
  return 'All deliveries failed for five days.';
}

/** Disables an endpoint, and records that in the account's audit log; does nothing if it is disabled already. */
export async function disableAndAudit(
  pool: Pool,
  { id, account_id }: { readonly id: string; readonly account_id: string },
  reason: string,
): Promise<void> {
  await transaction(pool, async (tx) => {
    if (!(await disableEndpoint(tx, account_id, id, reason))) return;
    await recordOwnChange(tx, account_id, 'endpoint disabled', encodeId('hook', id));
  });
}

import type { Pool } from 'pg';
import { encodeId } from '../../common/contract/ids.ts';
import { transaction } from '../../common/postgres/sql.ts';
import { recordOwnChange } from '../access/audit.ts';
import { disableEndpoint } from './endpoints.ts';
import type { HeldRow, Result } from './queue.ts';
import { HOPELESS_AFTER_MS } from './schedule.ts';

const GONE = 410;

/** Why an endpoint is disabled, after some answers of it; undefined when it is not. Source: docs/contract.md, "Events". */
export function hopeless(
  { verified_at, failing_since }: Pick<HeldRow, 'verified_at' | 'failing_since'>,
  results: readonly Pick<Result, 'status' | 'became'>[],
): string | undefined {
  if (results.some(({ status }) => status === GONE)) return 'It answered 410 Gone.';
  // Nothing else is sent to it, so what waits would wait for ever.
  if (verified_at === null && results.some(({ became }) => became === 'failed')) return 'Its test event failed.';
  if (failing_since === null || Date.now() - failing_since.getTime() < HOPELESS_AFTER_MS) return undefined;
  return 'Five days passed without one success.';
}

/** Disables an endpoint for a reason, unless somebody else has, and leaves that in its account's audit. */
export async function giveUp(
  pool: Pool,
  { id, account_id }: { readonly id: string; readonly account_id: string },
  reason: string,
): Promise<void> {
  await transaction(pool, async (tx) => {
    if (!(await disableEndpoint(tx, account_id, id, reason))) return;
    await recordOwnChange(tx, account_id, 'endpoint disabled', encodeId('hook', id));
  });
}

import type { PoolClient } from 'pg';
import { encodeId } from '../../../common/contract/ids.ts';
import { first, statement } from '../../../common/postgres/sql.ts';
import type { Route } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import { announce } from '../announce.ts';
import { CHANGED, scannedCodeFrom } from '../code-row.ts';
import { lockCode } from '../find-code.ts';

/** A deleted dynamic code no longer counts towards the plan's limit. Indexes: codes_pkey, code_counts_pkey. */
const remove = statement<{ version: string; updated_at: Date; deleted_at: Date }>(
  'codes_delete',
  `with counted as (
     update code_counts
     set listed = listed - 1, live = live - (select count(*) from codes where id = $1 and account_id = $2 and type = 'dynamic')
     where account_id = $2
   )
   update codes set deleted_at = now(), ${CHANGED}
   where id = $1 and account_id = $2 returning version, updated_at, deleted_at`,
);

/**
 * Deletes a code; its scans and short code are retained for ever. `accountId`: UUID; `id`: `qr_…`. Fails with
 * NOT_FOUND.
 */
export async function deleteCode(
  tx: PoolClient,
  platformUrl: string,
  accountId: string,
  id: string,
): Promise<{ id: string; route: Route }> {
  const before = await lockCode(tx, accountId, id);
  const removed = await first(tx, remove, [before.id, accountId]);
  if (!removed) throw new Error('a locked code does not exist');
  const row = { ...before, ...removed };
  const route = await announce(tx, row, scannedCodeFrom(row, platformUrl), { type: 'qr.archived' });
  return { id: encodeId('qr', row.id), route };
}

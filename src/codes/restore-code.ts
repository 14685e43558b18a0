import type { PoolClient } from 'pg';
import { failure } from '../../common/contract/errors.ts';
import { decodeId } from '../../common/contract/ids.ts';
import { first, run, statement } from '../../common/postgres/sql.ts';
import type { Code } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import type { Account } from '../access/caller.ts';
import { scanCounts } from '../scans/reports/scan-counts.ts';
import { announce } from './announce.ts';
import { codeFrom } from './code-row.ts';
import { codeLimitReached } from './create-code.ts';
import { findCode } from './find-code.ts';

/** Index: codes_pkey. Locked before the counter, as deleting does, so that the two never wait in a circle. */
const lock = statement<{ type: string; deleted: boolean }>(
  'codes_lock_any',
  `select type, deleted_at is not null as deleted from codes where id = $1 and account_id = $2 for update`,
);

/** A row when the limit ($2, null: none) leaves the places that it needs ($3). Index: code_counts_pkey. */
const takePlace = statement(
  'codes_take_place',
  `update code_counts set live = live + $3, listed = listed + 1
   where account_id = $1 and ($2::bigint is null or live + $3 <= greatest($2, live)) returning live`,
);

/** Index: code_counts_pkey. */
const used = statement<{ live: string }>('codes_live', 'select live from code_counts where account_id = $1');

/** Index: codes_pkey. */
const restore = statement(
  'codes_restore',
  'update codes set deleted_at = null, updated_at = now(), version = version + 1 where id = $1 and account_id = $2',
);

/**
 * Brings a deleted code back as it was; a dynamic one needs a place in the plan's limit. One that is not deleted stays
 * as it is, so that a call may be repeated. Fails with NOT_FOUND or QR_LIMIT_REACHED.
 */
export async function restoreCode(
  tx: PoolClient,
  platformUrl: string,
  { id: accountId, codeLimit }: Account,
  id: string,
): Promise<{ code: Code; changed: boolean }> {
  const uuid = decodeId('qr', id);
  const before = uuid === undefined ? undefined : await first(tx, lock, [uuid, accountId]);
  if (!uuid || !before) throw failure('NOT_FOUND', 'There is no such code on this account.');
  if (before.deleted) {
    const places = before.type === 'dynamic' ? 1 : 0;
    if (!(await first(tx, takePlace, [accountId, codeLimit, places]))) {
      const { live = '0' } = (await first(tx, used, [accountId])) ?? {};
      throw codeLimitReached(codeLimit ?? 0, Number(live));
    }
    await run(tx, restore, [uuid, accountId]);
  }
  const row = await findCode(tx, accountId, id);
  const scans = (await scanCounts(tx, accountId, [uuid])).get(uuid) ?? 0;
  const code = codeFrom(row, platformUrl, scans);
  if (before.deleted) await announce(tx, row, code, { type: 'qr.updated', changed: ['deleted'] });
  return { code, changed: before.deleted };
}

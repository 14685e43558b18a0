import type { ConnectError } from '@connectrpc/connect';
import type { PoolClient } from 'pg';
import { readFailure } from '../../../common/contract/errors.ts';
import { LIMITS, limitReached, NON_DYNAMIC } from '../../../common/contract/limits.ts';
import { first, run, statement } from '../../../common/postgres/sql.ts';
import { UpdateOutcome } from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import type { Account } from '../../access/caller.ts';
import { announceCurrent } from '../announce.ts';
import { CHANGED, type CodeRowWithoutContent } from '../code-row.ts';
import { countNonDynamic } from '../count-non-dynamic.ts';
import { codeLimitReached } from '../create/create-code.ts';
import type { UpdateResult } from '../update-result.ts';

/** Index: code_counts_pkey. */
const lockCounter = statement<{ live: string }>(
  'codes_lock_counter',
  'select live from code_counts where account_id = $1 for update',
);

/** Indexes: codes_pkey, code_counts_pkey. */
const restore = statement(
  'codes_restore_all',
  `with restored as (
     update codes set deleted_at = null, ${CHANGED}
     where account_id = $1 and id = any($2::uuid[]) returning type
   )
   update code_counts
   set listed = listed + (select count(*) from restored),
       live = live + (select count(*) from restored where type = 'dynamic')
   where account_id = $1`,
);

/**
 * Restores and announces deleted codes, as far as the limits allow: the plan's of dynamic codes, and that of others.
 * The transaction must have locked them, and before the counter, as in a deletion, so that the two cannot deadlock.
 * Returns why the rest is refused, by UUID.
 */
export async function restoreDeleted(
  tx: PoolClient,
  platformUrl: string,
  { id: accountId, codeLimit }: Account,
  rows: readonly CodeRowWithoutContent[],
): Promise<ReadonlyMap<string, ConnectError>> {
  const counter = await first(tx, lockCounter, [accountId]);
  let dynamic = Number(counter?.live ?? 0);
  let others = await countNonDynamic(tx, accountId);
  const restored: string[] = [];
  const refused = new Map<string, ConnectError>();
  for (const { id, type } of rows) {
    const isDynamic = type === 'dynamic';
    if (isDynamic && codeLimit !== null && dynamic >= codeLimit) {
      refused.set(id, codeLimitReached(codeLimit, dynamic));
    } else if (!isDynamic && others >= LIMITS[NON_DYNAMIC]) {
      refused.set(id, limitReached(NON_DYNAMIC));
    } else {
      if (isDynamic) dynamic += 1;
      else others += 1;
      restored.push(id);
    }
  }
  if (restored.length > 0) {
    await run(tx, restore, [accountId, restored]);
    await announceCurrent(tx, platformUrl, accountId, restored, () => ({ type: 'qr.updated', changed: ['deleted'] }));
  }
  return refused;
}

/** Restores those of the rows that are deleted, as `restoreDeleted` does. Returns the results by UUID. */
export async function restoreLocked(
  tx: PoolClient,
  platformUrl: string,
  account: Account,
  rows: readonly CodeRowWithoutContent[],
): Promise<ReadonlyMap<string, UpdateResult>> {
  const deleted = rows.filter(({ deleted_at }) => deleted_at !== null);
  const refused = await restoreDeleted(tx, platformUrl, account, deleted);
  return new Map(rows.map(({ id, deleted_at }) => [id, resultOf(deleted_at !== null, refused.get(id))]));
}

function resultOf(wasDeleted: boolean, refusal: ConnectError | undefined): UpdateResult {
  if (!wasDeleted) return { outcome: UpdateOutcome.UNCHANGED };
  if (!refusal) return { outcome: UpdateOutcome.CHANGED };
  const { reason, message } = readFailure(refusal);
  return { outcome: UpdateOutcome.REFUSED, reason, message };
}

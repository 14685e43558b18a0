import type { HandlerContext } from '@connectrpc/connect';
import { raw } from '@mikro-orm/core';
import type { PoolClient } from 'pg';
import { failure } from '../../../common/contract/errors.ts';
import { newUuid } from '../../../common/contract/ids.ts';
import { MAX_ROWS } from '../../../common/contract/limits.ts';
import { run, statement } from '../../../common/postgres/sql.ts';
import type { ChangeTargetsRequest } from '../../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { authorOf } from '../../access/audit.ts';
import { accountOf } from '../../access/caller.ts';
import { chargeQuota, costOfRows } from '../../access/usage.ts';
import type { IsPlatformHost } from '../../codes/fields/platform-hosts.ts';
import { copyRows } from '../../db/columns.ts';
import type { Database } from '../../db/database.ts';
import { entityManagerIn } from '../../db/orm-transaction.ts';
import { excerpt, MAX_REASON } from '../../db/storable.ts';
import { ROW_COLUMNS, TargetChangeEntity, type TargetChangeRowRecord } from './entities.ts';
import { type CodeOfRow, findCodes } from './find-codes.ts';
import { type ReadRow, readRows } from './read-rows.ts';

/**
 * Marks rows whose code has their target already. Joined as in `apply.ts`. Indexes: target_change_rows_pkey,
 * codes_pkey.
 */
const markUnchanged = statement<{ index: number }>(
  'target_changes_mark_unchanged',
  `with stored as materialized (
     select * from target_change_rows where account_id = $1 and change_id = $2 and outcome is null
   ), same as materialized (
     select r.account_id, r.change_id, r.index, c.target_version
     from stored r join codes c on c.account_id = r.account_id and c.id = r.code_id
     where (r.target_url is null or r.target_url = c.target_url)
       and (r.policy is null or nullif(r.policy, '{}') is not distinct from c.policy)
   )
   update target_change_rows r set outcome = 'unchanged', version = s.target_version
   from same s where r.account_id = s.account_id and r.change_id = s.change_id and r.index = s.index
   returning r.index`,
);

/**
 * Validates every row, finds its code and stores it, and charges the cost to the quota, all in the transaction of `tx`.
 * A dry run is completed with that, as is a change without a valid row. Every statement runs on `tx`: otherwise as many
 * calls as the pool has connections would each wait for a second one. Fails with TOO_MANY_ROWS or QUOTA_EXHAUSTED.
 */
export async function stage(
  { database, isPlatformHost }: { database: Database; isPlatformHost: IsPlatformHost },
  tx: PoolClient,
  context: HandlerContext,
  { rows, dryRun, note }: ChangeTargetsRequest,
): Promise<TargetChangeEntity> {
  const { id: accountId } = accountOf(context);
  if (rows.length > MAX_ROWS) {
    const sentence = `At most ${MAX_ROWS} targets can be changed at once, this request has ${rows.length}; split it.`;
    throw failure('TOO_MANY_ROWS', sentence);
  }
  const read = await readRows(tx, isPlatformHost, accountId, rows);
  const codes = await findCodes(tx, accountId, read);
  const failed = codes.filter((code) => 'problem' in code).length;
  const em = entityManagerIn(database.orm, tx);
  const id = newUuid();
  const change = em.create(TargetChangeEntity, {
    id,
    accountId,
    dryRun,
    author: authorOf(context),
    note,
    total: rows.length,
    failed,
    completedAt: null,
  });
  await em.flush();
  let index = 0;
  await copyRows(tx, 'target_change_rows', ROW_COLUMNS, read, (row) => {
    const record = recordOf(accountId, id, index, row, codes[index]);
    index += 1;
    return [record];
  });
  if (dryRun || failed === rows.length) {
    change.unchanged = dryRun ? (await run(tx, markUnchanged, [accountId, id])).length : 0;
    change.changed = rows.length - failed - change.unchanged;
    change.position = rows.length;
    change.completedAt = raw<Date>('now()');
    await em.flush();
  }
  await chargeQuota(tx, context, costOfRows(rows.length) - 1);
  return change;
}

function recordOf(
  account_id: string,
  change_id: string,
  index: number,
  { reference, targetUrl, policy }: ReadRow,
  found: CodeOfRow | undefined,
): TargetChangeRowRecord {
  const reason = found && 'problem' in found ? found.problem : null;
  return {
    account_id,
    change_id,
    index,
    reference_kind: reference?.kind ?? null,
    reference: reason === null ? (reference?.text ?? null) : excerpt(reference?.text),
    target_url: reason === null ? targetUrl : null,
    policy: reason === null ? policy : null,
    code_id: found?.code?.id ?? null,
    outcome: reason === null ? null : 'failed',
    version: reason === null && found?.code ? found.code.target_version + 1 : null,
    // It may quote what was sent.
    reason: excerpt(reason, MAX_REASON),
  };
}

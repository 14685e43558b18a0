import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import type { Pool } from 'pg';
import { run, statement } from '../../../common/postgres/sql.ts';
import { accountOfRow } from '../../access/entities.ts';
import { columnsOf, type RowOf } from '../../db/columns.ts';
import { deletionInSteps } from '../../db/delete-in-steps.ts';

/** A change of many targets: what its rows share, and its progress. */
export const TargetChangeEntity = defineEntity({
  name: 'TargetChange',
  tableName: 'target_changes',
  properties: {
    id: p.uuid().primary(),
    accountId: accountOfRow('target_changes'),
    dryRun: p.boolean(),
    /** The author and note of each new version. */
    author: p.text(),
    note: p.text(),
    total: p.integer(),
    changed: p.integer().default(0),
    unchanged: p.integer().default(0),
    failed: p.integer(),
    /** Rows before this index are final. */
    position: p.integer().default(0),
    createdAt: p.datetime().defaultRaw('now()'),
    completedAt: p.datetime().nullable(),
  },
  indexes: [
    { name: 'target_changes_listed', properties: ['accountId', 'id'] },
    { name: 'target_changes_unfinished', properties: ['accountId', 'id'], where: 'completed_at is null' },
  ],
});

export type TargetChangeEntity = InferEntity<typeof TargetChangeEntity>;

/** What a row names its code by. */
export const REFERENCES = ['id', 'short_code', 'external_ref'] as const;

/**
 * A row of a change. Its status follows from its outcome and the change's position. Without foreign keys, which would
 * be checked for each of 25,000 rows.
 */
export const TargetChangeRowEntity = defineEntity({
  name: 'TargetChangeRow',
  tableName: 'target_change_rows',
  properties: {
    accountId: p.uuid().primary(),
    changeId: p.uuid().primary(),
    index: p.integer().primary(),
    /** What `reference` is; null if the row names no code. */
    referenceKind: p
      .text()
      .$type<(typeof REFERENCES)[number]>()
      .nullable()
      .check(`reference_kind in ('id', 'short_code', 'external_ref')`),
    reference: p.text().nullable(),
    /** Trimmed; null leaves it unchanged. Null if the row failed when it was validated. */
    targetUrl: p.text().nullable(),
    /** A `Policy` in protobuf's JSON form, `{}` to remove it; null leaves it unchanged, or the row failed. */
    policy: p.json<unknown>().nullable(),
    /** Null if the code was not found. */
    codeId: p.uuid().nullable(),
    /** Null if the target is changed. */
    outcome: p.text().$type<'unchanged' | 'failed'>().nullable().check(`outcome in ('unchanged', 'failed')`),
    /** The version after the row, as expected until it is final; null if it failed. */
    version: p.integer().nullable(),
    /** Why it failed; else null. */
    reason: p.text().nullable(),
  },
});

/** A row of a change as statements read and write it. */
export type TargetChangeRowRecord = RowOf<InferEntity<typeof TargetChangeRowEntity>>;

/** The columns of a `TargetChangeRowRecord`. */
export const ROW_COLUMNS = columnsOf(TargetChangeRowEntity);

/** Index: target_change_rows_pkey. */
const deleteRows = deletionInSteps('target_changes_delete_rows', {
  table: 'target_change_rows',
  key: 'account_id, change_id, index',
  where: 'account_id = $1',
});

/** Index: target_changes_listed. */
const deleteChanges = statement('target_changes_delete', 'delete from target_changes where account_id = $1');

/** Deletes all changes of an account. Continues where an earlier call was interrupted. `accountId`: UUID. */
export async function deleteAccountTargetChanges(pool: Pool, accountId: string): Promise<void> {
  await run(pool, deleteChanges, [accountId]);
  await deleteRows(pool, [accountId]);
}

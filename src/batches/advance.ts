import { LockMode } from '@mikro-orm/core';
import type { MikroORM } from '@mikro-orm/postgresql';
import type { PoolClient } from 'pg';
import { run, statement } from '../../common/postgres/sql.ts';
import { timeIfOpen } from '../access/account-is-open.ts';
import { countListed, createCodes } from '../codes/create/create-codes.ts';
import { listed } from '../db/columns.ts';
import { bulkCompleted } from '../events/events.ts';
import { isCompleted } from '../jobs/progress.ts';
import { runStep, waitForLocks } from '../jobs/step.ts';
import { taskOf } from '../jobs/task.ts';
import { batchMessage } from './batch-message.ts';
import { BATCH_ROW_COLUMNS, BatchEntity, type BatchRowRecord } from './entities.ts';

/** Rows of one transaction: few enough that other requests wait only briefly, and that progress is visible. */
const ROWS_A_STEP = 1_000;

/** The creation of a batch's codes. Index: batches_unfinished. */
export const BATCH_TASK = taskOf({ name: 'batch_go_on', table: 'batches', property: 'batchId' });

/** The next rows to create codes for. Index: batch_rows_pkey. */
const pending = statement<BatchRowRecord & { code_id: string; target_url: string }>(
  'batches_pending',
  `select ${listed(BATCH_ROW_COLUMNS)}
   from batch_rows where batch_id = $1 and index >= $2 and index < $2 + ${ROWS_A_STEP} and outcome is null
   order by index`,
);

/** Index: batch_rows_pkey. */
const storeWarnings = statement(
  'batches_store_warnings',
  `with warned as materialized (
     select $1::uuid as batch_id, w.* from jsonb_to_recordset($2) as w (index integer, warnings text[])
   )
   update batch_rows r set warnings = w.warnings
   from warned w where r.batch_id = w.batch_id and r.index = w.index`,
);

/**
 * Creates the codes of the next rows of a batch in one transaction, and emits `bulk.completed` after the last ones.
 * Returns whether there are more; false also when another job does them, the batch was deleted or its account is
 * closed. `batchId`: UUID.
 */
export function advance(orm: MikroORM, platformUrl: string, batchId: string): Promise<boolean> {
  return runStep(orm, async (em, tx) => {
    // Another job on this batch skips it, and ends: see `scheduleStalled`. Index: batches_pkey.
    const batch = await em.findOne(BatchEntity, { id: batchId }, { lockMode: LockMode.PESSIMISTIC_PARTIAL_WRITE });
    if (!batch || isCompleted(batch)) return false;
    const now = await timeIfOpen(tx, batch.accountId);
    if (!now) return false;
    batch.created += await createNext(tx, platformUrl, batch, now);
    batch.position = Math.min(batch.total, batch.position + ROWS_A_STEP);
    if (batch.position === batch.total) {
      batch.completedAt = now;
      await bulkCompleted(tx, batch.accountId, batchMessage(batch));
    }
    return !isCompleted(batch);
  });
}

async function createNext(tx: PoolClient, platformUrl: string, batch: BatchEntity, now: Date): Promise<number> {
  const rows = await run(tx, pending, [batch.id, batch.position]);
  if (rows.length === 0) return 0;
  const { accountId, domainId, hostname, foregroundColor, backgroundColor } = batch;
  const shared = {
    accountId,
    domain: domainId == null || hostname == null ? null : { id: domainId, hostname },
    design: { foregroundColor, backgroundColor },
    now,
  };
  const codes = rows.map(({ code_id, target_url, name, campaign_type, folder, tags }) => ({
    id: code_id,
    targetUrl: target_url.trim(),
    name: name || null,
    campaignType: campaign_type,
    folder,
    tags,
  }));
  const warnings = await createCodes(tx, platformUrl, shared, codes);
  if (warnings.size > 0) {
    const warned = rows.flatMap(({ index, code_id }) => {
      const codeWarnings = warnings.get(code_id);
      return codeWarnings ? { index, warnings: codeWarnings } : [];
    });
    await run(tx, storeWarnings, [batch.id, JSON.stringify(warned)]);
  }
  // Batches that are stored meanwhile may hold the counter for seconds.
  await waitForLocks(tx);
  await countListed(tx, accountId, rows.length);
  return rows.length;
}

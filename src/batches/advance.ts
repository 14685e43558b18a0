import type { Pool, PoolClient } from 'pg';
import { first, run, statement, transaction } from '../../common/postgres/sql.ts';
import { createCodes } from '../codes/create-many.ts';
import { bulkCompleted } from '../events/events.ts';
import { BATCH_COLUMNS, type BatchRecord, batchFrom } from './batch-row.ts';

/** Rows of one transaction: few enough that no other request waits for long, and that progress is seen. */
const STEP = 1_000;

/**
 * Whoever else works on this batch waits, and then goes on behind this step. Accounts that were closed get no more codes.
 * Indexes: batches_pkey, accounts_pkey.
 */
const lock = statement<BatchRecord & { now: Date }>(
  'batches_lock',
  `select ${BATCH_COLUMNS}, now() as now from batches
   where id = $1 and exists (select from accounts a where a.id = account_id and a.closed_at is null) for update`,
);

interface PendingRow {
  index: number;
  code_id: string;
  target_url: string;
  name: string | null;
  campaign_type: string | null;
  folder: string | null;
  tags: string[];
}

/** Index: batch_rows_pkey. */
const pending = statement<PendingRow>(
  'batches_pending',
  `select index, code_id, target_url, name, campaign_type, folder, tags
   from batch_rows where batch_id = $1 and index >= $2 and index < $2 + ${STEP} and outcome is null
   order by index`,
);

/** Index: batch_rows_pkey. */
const warn = statement(
  'batches_warn',
  `update batch_rows r set warnings = w.warnings
   from jsonb_to_recordset($2) as w (index integer, warnings text[])
   where r.batch_id = $1 and r.index = w.index`,
);

/** Index: batches_pkey. */
const move = statement<BatchRecord>(
  'batches_move',
  `update batches
   set created = created + $2, position = least(total, position + ${STEP}),
       completed_at = case when position + ${STEP} >= total then now() end
   where id = $1
   returning ${BATCH_COLUMNS}`,
);

/**
 * Creates the codes of the next rows of a batch in one transaction, and tells when they were the last. Gives the batch
 * as it then is; undefined when there is no such batch, or no such account, any more. `batchId`: UUID.
 */
export function advance(pool: Pool, platformUrl: string, batchId: string): Promise<BatchRecord | undefined> {
  return transaction(pool, async (tx) => {
    const batch = await first(tx, lock, [batchId]);
    if (!batch || batch.completed_at !== null) return batch;
    const created = await createNext(tx, platformUrl, batch, batch.now);
    const moved = await first(tx, move, [batchId, created]);
    if (moved?.completed_at) await bulkCompleted(tx, moved.account_id, batchFrom(moved));
    return moved;
  });
}

async function createNext(tx: PoolClient, platformUrl: string, batch: BatchRecord, now: Date): Promise<number> {
  const rows = await run(tx, pending, [batch.id, batch.position]);
  if (rows.length === 0) return 0;
  const { domain_id: id, hostname } = batch;
  const together = {
    accountId: batch.account_id,
    domain: id === null || hostname === null ? null : { id, hostname },
    design: { foregroundColor: batch.foreground_color, backgroundColor: batch.background_color },
    now,
  };
  const wanted = rows.map(({ code_id, target_url, name, campaign_type, folder, tags }) => ({
    id: code_id,
    targetUrl: target_url.trim(),
    name: name || null,
    campaignType: campaign_type,
    folder,
    tags,
  }));
  const warnings = await createCodes(tx, platformUrl, together, wanted);
  if (warnings.size > 0) {
    const warned = rows.flatMap(({ index, code_id }) => {
      const lost = warnings.get(code_id);
      return lost ? { index, warnings: lost } : [];
    });
    await run(tx, warn, [batch.id, JSON.stringify(warned)]);
  }
  return rows.length;
}

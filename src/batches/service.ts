import { setTimeout as sleep } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import type { Pool } from 'pg';
import type { Logger } from 'pino';
import {
  BatchesService,
  type CreateBatchResponse,
  CreateBatchResponseSchema,
} from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { recordInternalChange } from '../access/audit.ts';
import { accountOf } from '../access/caller.ts';
import { once } from '../access/idempotency.ts';
import { encodeId } from '../contract/ids.ts';
import type { Connection } from '../db/sql.ts';
import { designWarnings } from '../images/contrast.ts';
import { advance } from './advance.ts';
import { goOnLater } from './background.ts';
import { type BatchRecord, batchFrom } from './batch-row.ts';
import { exportBatch } from './export.ts';
import { findBatch, getBatch, listBatches } from './read.ts';
import { stage } from './stage.ts';

/** How often a batch that is watched is looked at, in ms. */
const WATCH_MS = 200;

function answer(batch: BatchRecord): CreateBatchResponse {
  const staged = batchFrom(batch);
  return create(CreateBatchResponseSchema, { batch: staged, warnings: designWarnings(staged.design) });
}

/** Batches of an account. `platformUrl`: what scan URLs on the platform's host start with. */
export function batchesService(options: {
  pool: Pool;
  platformUrl: string;
  /** How long a request may go on creating codes before it leaves the rest to the background, in ms. */
  windowMs: number;
  /** How many requests may do so at once, each with a connection of its own; the others leave all to the background. */
  windows: number;
  logger: Logger;
  /** Aborts when the process is asked to stop: batches in hand are then left to the background. */
  stopping: AbortSignal;
  /** Called after codes were created: the outbox has something to carry. */
  changed(): void;
}): ServiceImpl<typeof BatchesService> {
  const { pool, platformUrl, windowMs, windows, logger, stopping, changed } = options;
  let open = 0;

  /** Creates codes until the batch is done or the window closes. What stands in the way is left to the background. */
  async function useWindow(connection: Connection, staged: BatchRecord, closes: number): Promise<BatchRecord> {
    let batch = staged;
    const until = open < windows ? closes : 0;
    open += 1;
    try {
      while (batch.completed_at === null && Date.now() < until && !stopping.aborted) {
        const advanced = await advance(connection, platformUrl, batch.id);
        if (!advanced) return batch;
        batch = advanced;
        changed();
      }
      if (batch.completed_at === null) await goOnLater(connection.client, batch.id, 0);
    } catch (error) {
      logger.warn({ err: error }, 'a batch goes on in the background');
    } finally {
      open -= 1;
    }
    return batch;
  }

  return {
    async createBatch(request, context) {
      const account = accountOf(context);
      const closes = Date.now() + windowMs;
      const call = { pool, accountId: account.id, context, method: BatchesService.method.createBatch, request };
      let staged: BatchRecord | undefined;
      return once(
        call,
        async (tx) => {
          staged = await stage(options, tx, context, request);
          await recordInternalChange(tx, context, encodeId('batch', staged.id));
          // Should this process die in the window, the job takes over when it closes.
          if (staged.completed_at === null) await goOnLater(tx, staged.id, windowMs);
          return answer(staged);
        },
        async (connection, told) => (staged ? answer(await useWindow(connection, staged, closes)) : told),
      );
    },
    getBatch: (request, context) => getBatch(pool, platformUrl, accountOf(context).id, request),
    listBatches: (request, context) => listBatches(pool, accountOf(context).id, request),
    async *watchBatch({ id }, context) {
      const accountId = accountOf(context).id;
      let told = -1;
      for (;;) {
        const batch = await findBatch(pool, accountId, id);
        if (batch.position !== told || batch.completed_at !== null) yield { batch: batchFrom(batch) };
        if (batch.completed_at !== null) return;
        told = batch.position;
        await sleep(WATCH_MS, undefined, { signal: context.signal }).catch(() => undefined);
        if (context.signal.aborted || stopping.aborted) return;
      }
    },
    exportBatch: (request, context) => exportBatch(pool, platformUrl, accountOf(context).id, request),
  };
}

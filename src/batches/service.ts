import { setTimeout as sleep } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import type { Logger } from 'pino';
import type { Cursors } from '../../common/contract/cursors.ts';
import { readFailure } from '../../common/contract/errors.ts';
import { encodeId } from '../../common/contract/ids.ts';
import {
  BatchesService,
  type CreateBatchResponse,
  CreateBatchResponseSchema,
} from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { recordInternalChange } from '../access/audit.ts';
import { accountOf } from '../access/caller.ts';
import { once } from '../access/idempotency.ts';
import { refundQuota } from '../access/usage.ts';
import { designWarnings } from '../codes/design-warnings.ts';
import type { IsPlatformHost } from '../codes/platform-hosts.ts';
import type { Database } from '../db/database.ts';
import { scheduleBatch } from './background.ts';
import { batchMessage, isCompleted } from './batch-message.ts';
import type { BatchEntity } from './entities.ts';
import { exportBatch } from './export.ts';
import { findBatch, getBatch, listBatches } from './read.ts';
import { stage } from './stage.ts';

/** How often a watched batch is read, in ms. */
const WATCH_INTERVAL_MS = 200;

/** How often a request checks whether its batch has completed: soon at first, as most are small; the pause doubles, in ms. */
const POLL_MS = { first: 5, last: 50 };

function createBatchResponse(batch: BatchEntity): CreateBatchResponse {
  const staged = batchMessage(batch);
  return create(CreateBatchResponseSchema, { batch: staged, warnings: designWarnings(staged.design) });
}

/** Batches of an account. `platformUrl`: what scan URLs on the platform's host start with. */
export function batchesService(options: {
  database: Database;
  cursors: Cursors;
  platformUrl: string;
  isPlatformHost: IsPlatformHost;
  /** How long a request may wait for its batch before it answers with an unfinished one, in ms. */
  windowMs: number;
  /** How many requests may wait at a time, as one with an idempotency key holds a connection; others answer at once. */
  windows: number;
  logger: Logger;
  /** Aborts when the process begins to stop: requests no longer wait. */
  stopping: AbortSignal;
}): ServiceImpl<typeof BatchesService> {
  const { database, cursors, platformUrl, windowMs, windows, logger, stopping } = options;
  const { orm, pool } = database;
  let waiting = 0;

  /** Waits until the background workers have completed the batch, at most until `closes` (ms since 1970); returns the current batch. */
  async function wait(staged: BatchEntity, closes: number, disconnected: AbortSignal): Promise<BatchEntity> {
    let batch = staged;
    if (waiting >= windows) return batch;
    waiting += 1;
    const signal = AbortSignal.any([stopping, disconnected]);
    try {
      const id = encodeId('batch', batch.id);
      let pause = POLL_MS.first;
      while (!isCompleted(batch) && Date.now() < closes && !signal.aborted) {
        await sleep(pause, undefined, { signal }).catch(() => undefined);
        pause = Math.min(pause * 2, POLL_MS.last);
        batch = await findBatch(orm.em.fork(), batch.accountId, id);
      }
    } catch (error) {
      logger.warn({ err: error }, 'a request could not wait for its batch');
    } finally {
      waiting -= 1;
    }
    return batch;
  }

  return {
    async createBatch(request, context) {
      const account = accountOf(context);
      const closes = Date.now() + windowMs;
      const call = { pool, accountId: account.id, context, method: BatchesService.method.createBatch, request };
      let staged: BatchEntity | undefined;
      const creation = once(
        call,
        async (tx) => {
          staged = await stage(options, tx, context, request);
          await recordInternalChange(tx, context, encodeId('batch', staged.id));
          if (!isCompleted(staged)) await scheduleBatch(tx, staged.id);
          return createBatchResponse(staged);
        },
        async (stored) => (staged ? createBatchResponse(await wait(staged, closes, context.signal)) : stored),
      );
      return creation.catch(async (error: unknown) => {
        // A 429 costs nothing, not even the request of its admission.
        if (readFailure(error).reason === 'QUOTA_EXHAUSTED') await refundQuota(pool, context);
        throw error;
      });
    },
    getBatch: (request, context) => getBatch(database, platformUrl, accountOf(context).id, request),
    listBatches: (request, context) => listBatches(database, cursors, accountOf(context).id, request),
    async *watchBatch({ id }, context) {
      const accountId = accountOf(context).id;
      let lastPosition = -1;
      for (;;) {
        const batch = await findBatch(orm.em.fork(), accountId, id);
        if (batch.position !== lastPosition || isCompleted(batch)) yield { batch: batchMessage(batch) };
        if (isCompleted(batch)) return;
        lastPosition = batch.position;
        await sleep(WATCH_INTERVAL_MS, undefined, { signal: context.signal }).catch(() => undefined);
        if (context.signal.aborted || stopping.aborted) return;
      }
    },
    exportBatch: (request, context) => exportBatch(database, platformUrl, accountOf(context).id, request),
  };
}

import { setTimeout as sleep } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import type { Logger } from 'pino';
import type { Cursors } from '../../common/contract/cursors.ts';
import { encodeId } from '../../common/contract/ids.ts';
import {
  BatchesService,
  type CreateBatchResponse,
  CreateBatchResponseSchema,
} from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { recordInternalChange } from '../access/audit.ts';
import { accountOf } from '../access/caller.ts';
import { once } from '../access/idempotency.ts';
import { designWarnings } from '../codes/design-warnings.ts';
import type { IsPlatformHost } from '../codes/platform-hosts.ts';
import type { Database } from '../db/database.ts';
import { finishSoon } from './background.ts';
import { batchMessage, isCompleted } from './batch-message.ts';
import type { BatchEntity } from './entities.ts';
import { exportBatch } from './export.ts';
import { findBatch, getBatch, listBatches } from './read.ts';
import { stage } from './stage.ts';

/** How often a batch that is watched is looked at, in ms. */
const WATCH_MS = 200;

/** How often a request looks whether its batch is done: soon, as most are small, then up to so many ms apart. */
const LOOK_MS = { first: 5, last: 50 };

function answer(batch: BatchEntity): CreateBatchResponse {
  const staged = batchMessage(batch);
  return create(CreateBatchResponseSchema, { batch: staged, warnings: designWarnings(staged.design) });
}

/** Batches of an account. `platformUrl`: what scan URLs on the platform's host start with. */
export function batchesService(options: {
  database: Database;
  cursors: Cursors;
  platformUrl: string;
  isPlatformHost: IsPlatformHost;
  /** How long a request may wait for its batch before it answers that the rest is still to come, in ms. */
  windowMs: number;
  /** How many requests may wait at once, as one with a key holds a connection meanwhile; others answer at once. */
  windows: number;
  logger: Logger;
  /** Aborts when the process is asked to stop: no request waits any longer. */
  stopping: AbortSignal;
}): ServiceImpl<typeof BatchesService> {
  const { database, cursors, platformUrl, windowMs, windows, logger, stopping } = options;
  const { orm, pool } = database;
  let open = 0;

  /** Waits until the background has ended the batch or the window closes; the batch as it then is. */
  async function wait(staged: BatchEntity, closes: number, left: AbortSignal): Promise<BatchEntity> {
    let batch = staged;
    if (open >= windows) return batch;
    open += 1;
    const signal = AbortSignal.any([stopping, left]);
    try {
      const id = encodeId('batch', batch.id);
      let pause = LOOK_MS.first;
      while (!isCompleted(batch) && Date.now() < closes && !signal.aborted) {
        await sleep(pause, undefined, { signal }).catch(() => undefined);
        pause = Math.min(pause * 2, LOOK_MS.last);
        batch = await findBatch(orm.em.fork(), batch.accountId, id);
      }
    } catch (error) {
      logger.warn({ err: error }, 'a request could not wait for its batch');
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
      let staged: BatchEntity | undefined;
      return once(
        call,
        async (tx) => {
          staged = await stage(options, tx, context, request);
          await recordInternalChange(tx, context, encodeId('batch', staged.id));
          if (!isCompleted(staged)) await finishSoon(tx, staged.id);
          return answer(staged);
        },
        async (told) => (staged ? answer(await wait(staged, closes, context.signal)) : told),
      );
    },
    getBatch: (request, context) => getBatch(database, platformUrl, accountOf(context).id, request),
    listBatches: (request, context) => listBatches(database, cursors, accountOf(context).id, request),
    async *watchBatch({ id }, context) {
      const accountId = accountOf(context).id;
      let told = -1;
      for (;;) {
        const batch = await findBatch(orm.em.fork(), accountId, id);
        if (batch.position !== told || isCompleted(batch)) yield { batch: batchMessage(batch) };
        if (isCompleted(batch)) return;
        told = batch.position;
        await sleep(WATCH_MS, undefined, { signal: context.signal }).catch(() => undefined);
        if (context.signal.aborted || stopping.aborted) return;
      }
    },
    exportBatch: (request, context) => exportBatch(database, platformUrl, accountOf(context).id, request),
  };
}

import { create } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import { encodeId } from '../../common/contract/ids.ts';
import {
  BatchesService,
  type CreateBatchResponse,
  CreateBatchResponseSchema,
} from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { isOpen } from '../access/account-is-open.ts';
import { recordIfByService } from '../access/audit.ts';
import { accountOf } from '../access/caller.ts';
import { once } from '../access/idempotency/once.ts';
import { costOfRows, refundIfExhausted } from '../access/usage.ts';
import { accountStreams } from '../calls/account-streams.ts';
import type { Cursors } from '../calls/cursors.ts';
import { designWarnings } from '../codes/fields/design-warnings.ts';
import type { IsPlatformHost } from '../codes/fields/platform-hosts.ts';
import type { Database } from '../db/database.ts';
import { type FollowedWork, isCompleted, type RequestWindow, type Watch } from '../jobs/progress.ts';
import { schedule } from '../jobs/task.ts';
import { BATCH_TASK } from './advance.ts';
import { batchMessage } from './batch-message.ts';
import type { BatchEntity } from './entities.ts';
import { exportBatch } from './export.ts';
import { findBatch, getBatch, listBatches } from './read.ts';
import { stage } from './stage.ts';

function createBatchResponse(batch: BatchEntity): CreateBatchResponse {
  const staged = batchMessage(batch);
  return create(CreateBatchResponseSchema, { batch: staged, warnings: designWarnings(staged.design) });
}

/**
 * Concurrent exports of an account in this process. One of 25,000 codes takes 40 MB for the directory of the ZIP until
 * its reader has taken all of it, and as much again for the manifest if its target URLs are long and random.
 */
const MOST_EXPORTS = 4;

/** Batches of an account. `platformUrl`: what scan URLs on the platform's host start with. */
export function batchesService(options: {
  database: Database;
  cursors: Cursors;
  platformUrl: string;
  isPlatformHost: IsPlatformHost;
  window: RequestWindow;
  watch: Watch;
}): ServiceImpl<typeof BatchesService> {
  const { database, cursors, platformUrl, window, watch } = options;
  const { orm, pool } = database;
  const exports = accountStreams(MOST_EXPORTS, 'exports');
  const followed = (accountId: string, id: string): FollowedWork<BatchEntity> => ({
    read: () => findBatch(orm.em.fork(), accountId, id),
    isOpen: () => isOpen(pool, accountId),
  });

  return {
    async createBatch(request, context) {
      const account = accountOf(context);
      const closes = window.closes(context);
      const { method } = BatchesService;
      const cost = costOfRows(request.rows.length);
      const call = { pool, accountId: account.id, context, method: method.createBatch, request, cost };
      let staged: BatchEntity | undefined;
      const creation = once(
        call,
        async (tx) => {
          staged = await stage(options, tx, context, request);
          await recordIfByService(tx, context, encodeId('batch', staged.id));
          if (!isCompleted(staged)) await schedule(tx, BATCH_TASK, staged.id);
          return createBatchResponse(staged);
        },
        async (stored) => {
          if (!staged) return stored;
          const work = followed(account.id, encodeId('batch', staged.id));
          return createBatchResponse(await window.wait(staged, work, closes, context));
        },
      );
      return refundIfExhausted(pool, context, creation);
    },
    getBatch: (request, context) => getBatch(database, platformUrl, accountOf(context).id, request),
    listBatches: (request, context) => listBatches(database, cursors, accountOf(context).id, request),
    async *watchBatch({ id }, context) {
      const { id: accountId } = accountOf(context);
      for await (const batch of watch(accountId, followed(accountId, id), context.signal)) {
        yield { batch: batchMessage(batch) };
      }
    },
    exportBatch(request, context) {
      const { id: accountId } = accountOf(context);
      return exports(accountId, exportBatch(database, platformUrl, accountId, request));
    },
  };
}

import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { encodeId } from '../../common/contract/ids.ts';
import { type Batch, BatchSchema, BatchStatus } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { isCompleted } from '../jobs/progress.ts';
import type { BatchEntity } from './entities.ts';

/** The batch as a message of the RPC API, without its rows. */
export function batchMessage(batch: BatchEntity): Batch {
  const { total, failed, skipped, created, domainId } = batch;
  return create(BatchSchema, {
    id: encodeId('batch', batch.id),
    ...(batch.name == null ? {} : { name: batch.name }),
    status: isCompleted(batch) ? BatchStatus.COMPLETED : BatchStatus.PROCESSING,
    counts: { total, failed, skipped, created, pending: total - failed - skipped - created },
    ...(domainId == null ? {} : { domainId: encodeId('domain', domainId) }),
    design: { foregroundColor: batch.foregroundColor, backgroundColor: batch.backgroundColor },
    createdAt: timestampFromDate(batch.createdAt),
    ...(batch.completedAt == null ? {} : { completedAt: timestampFromDate(batch.completedAt) }),
  });
}

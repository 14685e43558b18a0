import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { encodeId } from '../../common/contract/ids.ts';
import { type Batch, BatchSchema, BatchStatus } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { columnsOf, listed, type RowOf } from '../db/columns.ts';
import { BatchEntity } from './entities.ts';

/** A batch as Postgres has it. Ids are UUIDs. */
export type BatchRecord = RowOf<BatchEntity>;

/** The columns of a `BatchRecord`. */
export const BATCH_COLUMNS = listed(columnsOf(BatchEntity));

/** The batch as the contract has it, without its rows. */
export function batchFrom(batch: BatchRecord): Batch {
  const { total, failed, skipped, created, completed_at, domain_id } = batch;
  return create(BatchSchema, {
    id: encodeId('batch', batch.id),
    ...(batch.name === null ? {} : { name: batch.name }),
    status: completed_at === null ? BatchStatus.PROCESSING : BatchStatus.COMPLETED,
    counts: { total, failed, skipped, created, pending: total - failed - skipped - created },
    ...(domain_id === null ? {} : { domainId: encodeId('domain', domain_id) }),
    design: { foregroundColor: batch.foreground_color, backgroundColor: batch.background_color },
    createdAt: timestampFromDate(batch.created_at),
    ...(completed_at === null ? {} : { completedAt: timestampFromDate(completed_at) }),
  });
}

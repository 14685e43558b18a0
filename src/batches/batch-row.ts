import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { encodeId } from '../../common/contract/ids.ts';
import { type Batch, BatchSchema, BatchStatus } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';

/** A batch as Postgres has it. Ids are UUIDs. */
export interface BatchRecord {
  id: string;
  account_id: string;
  name: string | null;
  domain_id: string | null;
  hostname: string | null;
  foreground_color: string;
  background_color: string;
  total: number;
  failed: number;
  skipped: number;
  created: number;
  /** Rows before this index are final. */
  position: number;
  created_at: Date;
  completed_at: Date | null;
}

/** The columns of a `BatchRecord`. */
export const BATCH_COLUMNS = `id, account_id, name, domain_id, hostname, foreground_color, background_color, total, failed,
  skipped, created, position, created_at, completed_at`;

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

import { type Batch, BatchStatus } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { type DesignJson, designJson, timeJson } from './code-json.ts';

/** A batch in REST bodies and events, without its rows. Source: docs/contract.md, "Batches". */
export interface BatchJson {
  id: string;
  name: string | null;
  /** Completed: every row is final. */
  status: 'processing' | 'completed';
  /** Rows by status. */
  counts: { total: number; pending: number; created: number; failed: number; skipped: number };
  /** Null: the platform's. */
  domain_id: string | null;
  design: DesignJson;
  /** RFC 3339, UTC, with milliseconds; as `completed_at`, which is null until completed. */
  created_at: string;
  completed_at: string | null;
}

/** Converts a batch to JSON. */
export function batchJson(batch: Batch): BatchJson {
  const { total = 0, pending = 0, created = 0, failed = 0, skipped = 0 } = batch.counts ?? {};
  return {
    id: batch.id,
    name: batch.name ?? null,
    status: batch.status === BatchStatus.COMPLETED ? 'completed' : 'processing',
    counts: { total, pending, created, failed, skipped },
    domain_id: batch.domainId ?? null,
    design: designJson(batch.design),
    created_at: timeJson(batch.createdAt),
    completed_at: batch.completedAt ? timeJson(batch.completedAt) : null,
  };
}

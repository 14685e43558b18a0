import { create } from '@bufbuild/protobuf';
import type { Pool } from 'pg';
import type { Cursors } from '../../common/contract/cursors.ts';
import { failure } from '../../common/contract/errors.ts';
import { decodeId, encodeId } from '../../common/contract/ids.ts';
import { pageById, pageOf } from '../../common/contract/paging.ts';
import { LONG_PAGE_LIMIT, PAGE_LIMIT } from '../../common/contract/ranges.ts';
import { first, type Queryable, run, statement } from '../../common/postgres/sql.ts';
import {
  type BatchRow,
  BatchRowSchema,
  type GetBatchRequest,
  type GetBatchResponse,
  GetBatchResponseSchema,
  type ListBatchesRequest,
  type ListBatchesResponse,
  ListBatchesResponseSchema,
  RowStatus,
} from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { scanUrl } from '../codes/code-row.ts';
import { BATCH_COLUMNS, type BatchRecord, batchFrom } from './batch-row.ts';

/** Index: batches_pkey. */
const find = statement<BatchRecord>(
  'batches_find',
  `select ${BATCH_COLUMNS} from batches where id = $1 and account_id = $2`,
);

/** Indexes: batches_listed for both, the count index only. */
const page = statement<BatchRecord>(
  'batches_page',
  `select ${BATCH_COLUMNS} from batches where account_id = $1 and id < $2 order by id desc limit $3 offset $4`,
);
const count = statement<{ total: string }>(
  'batches_count',
  'select count(*) as total from batches where account_id = $1',
);

/** A row with its code, if it has become one. */
export interface RowRecord {
  index: number;
  target_url: string | null;
  name: string | null;
  external_ref: string | null;
  outcome: 'failed' | 'skipped' | null;
  reason: string | null;
  warnings: string[] | null;
  code_id: string | null;
  short_code: string | null;
}

/** Each status as a condition on the rows `r` of a batch at position $2. */
const CONDITIONS: Record<number, string> = {
  [RowStatus.UNSPECIFIED]: 'true',
  [RowStatus.PENDING]: 'r.outcome is null and r.index >= $2',
  [RowStatus.CREATED]: 'r.outcome is null and r.index < $2',
  [RowStatus.FAILED]: `r.outcome = 'failed'`,
  [RowStatus.SKIPPED]: `r.outcome = 'skipped'`,
};

/** Indexes: batch_rows_pkey in its order, codes_pkey. */
const rowsOf = (status: RowStatus) =>
  statement<RowRecord>(
    `batches_rows_${status}`,
    `select r.index, r.target_url, r.name, r.external_ref, r.outcome, r.reason, r.warnings, r.code_id, c.short_code
     from batch_rows r left join codes c on c.id = r.code_id and c.account_id = $5
     where r.batch_id = $1 and ($2::integer is not null) and ${CONDITIONS[status]}
     order by r.index limit $3 offset $4`,
  );

/** The account's batch by its id `batch_…`. Fails with NOT_FOUND. */
export async function findBatch(on: Queryable, accountId: string, id: string): Promise<BatchRecord> {
  const uuid = decodeId('batch', id);
  const batch = uuid === undefined ? undefined : await first(on, find, [uuid, accountId]);
  if (!batch) throw failure('NOT_FOUND', 'There is no such batch on this account.');
  return batch;
}

/** A batch and a page of its rows in the order sent. */
export async function getBatch(
  pool: Pool,
  platformUrl: string,
  accountId: string,
  request: GetBatchRequest,
): Promise<GetBatchResponse> {
  const { limit, offset } = pageOf(request, LONG_PAGE_LIMIT);
  const batch = await findBatch(pool, accountId, request.id);
  const rows = await run(pool, rowsOf(request.status), [batch.id, batch.position, limit, offset, accountId]);
  return create(GetBatchResponseSchema, {
    batch: batchFrom(batch),
    rows: rows.map((row) => rowFrom(batch, row, platformUrl)),
    limit,
    offset,
    total: totalOf(batch, request.status),
  });
}

/** A page of the account's batches, newest first. */
export async function listBatches(
  { pool, cursors }: { pool: Pool; cursors: Cursors },
  accountId: string,
  request: ListBatchesRequest,
): Promise<ListBatchesResponse> {
  const { before, limit, offset, end } = pageById([cursors, `batches ${accountId}`], request, PAGE_LIMIT);
  const [rows, counted] = await Promise.all([
    run(pool, page, [accountId, before, limit, offset]),
    first(pool, count, [accountId]),
  ]);
  const { items, next } = end(rows);
  return create(ListBatchesResponseSchema, {
    batches: items.map(batchFrom),
    ...pageOf(request, PAGE_LIMIT),
    ...next,
    total: BigInt(counted?.total ?? 0),
  });
}

function totalOf({ total, created, failed, skipped }: BatchRecord, status: RowStatus): number {
  switch (status) {
    case RowStatus.PENDING:
      return total - created - failed - skipped;
    case RowStatus.CREATED:
      return created;
    case RowStatus.FAILED:
      return failed;
    case RowStatus.SKIPPED:
      return skipped;
    default:
      return total;
  }
}

function rowFrom(batch: BatchRecord, row: RowRecord, platformUrl: string): BatchRow {
  const { index, target_url, name, external_ref, outcome, reason, code_id, short_code } = row;
  const told = create(BatchRowSchema, {
    index,
    status: statusOf(batch, row),
    ...(target_url === null ? {} : { targetUrl: target_url }),
    ...(name ? { name } : {}),
    ...(external_ref === null ? {} : { externalRef: external_ref }),
    ...(outcome === null || reason === null ? {} : { reason }),
  });
  if (told.status === RowStatus.CREATED && code_id !== null && short_code !== null) {
    told.codeId = encodeId('qr', code_id);
    told.shortCode = short_code;
    told.scanUrl = scanUrl({ hostname: batch.hostname, short_code }, platformUrl);
    told.warnings = row.warnings ?? [];
  }
  return told;
}

function statusOf({ position }: BatchRecord, { outcome, index }: RowRecord): RowStatus {
  if (outcome !== null) return outcome === 'failed' ? RowStatus.FAILED : RowStatus.SKIPPED;
  return index < position ? RowStatus.CREATED : RowStatus.PENDING;
}

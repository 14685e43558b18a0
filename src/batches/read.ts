import { create } from '@bufbuild/protobuf';
import type { EntityManager } from '@mikro-orm/postgresql';
import { decodeId, encodeId } from '../../common/contract/ids.ts';
import { LONG_PAGE_LIMIT, PAGE_LIMIT } from '../../common/contract/ranges.ts';
import { run, statement } from '../../common/postgres/sql.ts';
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
import type { Cursors } from '../calls/cursors.ts';
import { notFound } from '../calls/not-found.ts';
import { pageById, pageOf } from '../calls/paging.ts';
import { scanUrl } from '../codes/code-row.ts';
import type { Database } from '../db/database.ts';
import { lookUpCode } from '../db/look-up-code.ts';
import { batchMessage } from './batch-message.ts';
import { BatchEntity, type BatchRowRecord } from './entities.ts';

const SHOWN_COLUMNS = [
  'index',
  'target_url',
  'name',
  'campaign_type',
  'folder',
  'tags',
  'external_ref',
  'outcome',
  'reason',
  'warnings',
  'code_id',
] as const satisfies readonly (keyof BatchRowRecord)[];

/** A row with the short code of its code, if it has one. */
type RowWithCode = Pick<BatchRowRecord, (typeof SHOWN_COLUMNS)[number]> & { readonly short_code: string | null };

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
  statement<RowWithCode>(
    `batches_rows_${status}`,
    `select ${SHOWN_COLUMNS.map((name) => `r.${name}`).join(', ')}, c.short_code
     from (
       select * from batch_rows r where batch_id = $1 and ($2::integer is not null) and ${CONDITIONS[status]}
       order by index limit $3 offset $4
     ) r left join ${lookUpCode('short_code', 'r.code_id', '$5')} c on true
     order by r.index`,
  );

/** The account's batch by its id `batch_…`. Fails with NOT_FOUND. Index: batches_pkey. */
export async function findBatch(em: EntityManager, accountId: string, id: string): Promise<BatchEntity> {
  const uuid = decodeId('batch', id);
  const batch = uuid === undefined ? null : await em.findOne(BatchEntity, { id: uuid, accountId });
  if (!batch) throw notFound('batch');
  return batch;
}

/** A batch and a page of its rows, in the order of the request that created it. */
export async function getBatch(
  { orm, pool }: Database,
  platformUrl: string,
  accountId: string,
  request: GetBatchRequest,
): Promise<GetBatchResponse> {
  const { limit, offset } = pageOf(request, LONG_PAGE_LIMIT);
  const batch = await findBatch(orm.em.fork(), accountId, request.id);
  const rows = await run(pool, rowsOf(request.status), [batch.id, batch.position, limit, offset, accountId]);
  return create(GetBatchResponseSchema, {
    batch: batchMessage(batch),
    rows: rows.map((row) => rowMessage(batch, row, platformUrl)),
    limit,
    offset,
    total: totalOf(batch, request.status),
  });
}

/** A page of the account's batches, newest first. Index: batches_listed, also for the count; or batches_unfinished. */
export async function listBatches(
  { orm }: Database,
  cursors: Cursors,
  accountId: string,
  request: ListBatchesRequest,
): Promise<ListBatchesResponse> {
  const { before, limit, offset, end } = pageById([cursors, `batches ${accountId}`], request, PAGE_LIMIT);
  const em = orm.em.fork();
  const where = { accountId, ...(request.unfinished && { completedAt: null }) };
  const [batches, total] = await Promise.all([
    em.find(BatchEntity, { ...where, id: { $lt: before } }, { orderBy: { id: 'desc' }, limit, offset }),
    em.count(BatchEntity, where),
  ]);
  const { items, next } = end(batches);
  return create(ListBatchesResponseSchema, {
    batches: items.map(batchMessage),
    ...pageOf(request, PAGE_LIMIT),
    ...next,
    total: BigInt(total),
  });
}

function totalOf({ total, created, failed, skipped }: BatchEntity, status: RowStatus): number {
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

function rowMessage(batch: BatchEntity, row: RowWithCode, platformUrl: string): BatchRow {
  const { index, target_url, name, campaign_type, folder, tags, external_ref, outcome, reason } = row;
  const message = create(BatchRowSchema, {
    index,
    status: statusOf(batch, row),
    ...(target_url === null ? {} : { targetUrl: target_url }),
    ...(name ? { name } : {}),
    ...(campaign_type === null ? {} : { campaignType: campaign_type }),
    ...(folder === null ? {} : { folder }),
    tags,
    ...(external_ref === null ? {} : { externalRef: external_ref }),
    ...(outcome === null || reason === null ? {} : { reason }),
  });
  const { code_id, short_code } = row;
  if (message.status === RowStatus.CREATED && code_id !== null && short_code !== null) {
    message.codeId = encodeId('qr', code_id);
    message.shortCode = short_code;
    message.scanUrl = scanUrl({ hostname: batch.hostname ?? null, short_code }, platformUrl);
    message.warnings = row.warnings ?? [];
  }
  return message;
}

function statusOf({ position }: BatchEntity, { outcome, index }: RowWithCode): RowStatus {
  if (outcome !== null) return outcome === 'failed' ? RowStatus.FAILED : RowStatus.SKIPPED;
  return index < position ? RowStatus.CREATED : RowStatus.PENDING;
}

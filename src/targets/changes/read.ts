import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { EntityManager } from '@mikro-orm/postgresql';
import { decodeId, encodeId } from '../../../common/contract/ids.ts';
import { LONG_PAGE_LIMIT, PAGE_LIMIT } from '../../../common/contract/ranges.ts';
import { run, statement } from '../../../common/postgres/sql.ts';
import {
  type GetTargetChangeRequest,
  type ListTargetChangesRequest,
  type TargetChangeRowSchema,
  type TargetChangeSchema,
  TargetChangeStatus,
  TargetRowStatus,
} from '../../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { type Cursors, positionAfter } from '../../calls/cursors.ts';
import { notFound } from '../../calls/not-found.ts';
import { endPage, pageById, pageOf } from '../../calls/paging.ts';
import type { Database } from '../../db/database.ts';
import { isCompleted } from '../../jobs/progress.ts';
import { TargetChangeEntity, type TargetChangeRowRecord } from './entities.ts';

const SHOWN_COLUMNS = [
  'index',
  'reference_kind',
  'reference',
  'code_id',
  'outcome',
  'version',
  'reason',
] as const satisfies readonly (keyof TargetChangeRowRecord)[];

type ShownRow = Pick<TargetChangeRowRecord, (typeof SHOWN_COLUMNS)[number]>;

/** Each status as a condition on the rows of a change at position $3. */
const CONDITIONS: Readonly<Record<TargetRowStatus, string>> = {
  [TargetRowStatus.UNSPECIFIED]: 'true',
  [TargetRowStatus.PENDING]: `outcome is null and index >= $3`,
  [TargetRowStatus.CHANGED]: `outcome is null and index < $3`,
  [TargetRowStatus.UNCHANGED]: `outcome = 'unchanged'`,
  [TargetRowStatus.FAILED]: `outcome = 'failed'`,
};

/** Index: target_change_rows_pkey, in its order. */
const rowsOf = (status: TargetRowStatus) =>
  statement<ShownRow>(
    `target_changes_rows_${status}`,
    `select ${SHOWN_COLUMNS.join(', ')} from target_change_rows
     where account_id = $1 and change_id = $2 and $3::integer is not null and index > $4 and ${CONDITIONS[status]}
     order by index limit $5`,
  );

/** The account's change by its id `change_…`. Fails with NOT_FOUND. Index: target_changes_pkey. */
export async function findChange(em: EntityManager, accountId: string, id: string): Promise<TargetChangeEntity> {
  const uuid = decodeId('change', id);
  const change = uuid === undefined ? null : await em.findOne(TargetChangeEntity, { id: uuid, accountId });
  if (!change) throw notFound('change of targets');
  return change;
}

/** A change and a page of its rows, in the order sent. `cursors`: for texts. */
export async function getTargetChange(
  { orm, pool }: Database,
  cursors: Cursors,
  accountId: string,
  request: GetTargetChangeRequest,
) {
  const { limit } = pageOf(request, LONG_PAGE_LIMIT);
  const change = await findChange(orm.em.fork(), accountId, request.id);
  const list = `target change ${change.id} ${request.status}`;
  const after = Number(positionAfter(cursors, list, request.cursor || undefined) ?? -1);
  const values = [accountId, change.id, change.position, after, limit + 1];
  const rows = await run(pool, rowsOf(request.status), values);
  const { items, next } = endPage(rows, limit, [cursors, list], ({ index }) => String(index));
  return { change: changeMessage(change), rows: items.map((row) => rowMessage(change, row)), ...next };
}

/**
 * A page of the account's changes, newest first. Index: target_changes_listed or target_changes_unfinished. `cursors`:
 * for ids.
 */
export async function listTargetChanges(
  { orm }: Database,
  cursors: Cursors,
  accountId: string,
  request: ListTargetChangesRequest,
) {
  const requested = { limit: request.limit, cursor: request.cursor || undefined };
  const { before, limit, end } = pageById([cursors, `target changes ${accountId}`], requested, PAGE_LIMIT);
  const where = { accountId, id: { $lt: before }, ...(request.unfinished && { completedAt: null }) };
  const found = await orm.em.fork().find(TargetChangeEntity, where, { orderBy: { id: 'desc' }, limit });
  const { items, next } = end(found);
  return { changes: items.map(changeMessage), ...next };
}

/** The change as a message of the RPC API, without its rows. */
export function changeMessage(change: TargetChangeEntity): MessageInitShape<typeof TargetChangeSchema> {
  const { total, changed, unchanged, failed } = change;
  return {
    id: encodeId('change', change.id),
    status: isCompleted(change) ? TargetChangeStatus.COMPLETED : TargetChangeStatus.PROCESSING,
    dryRun: change.dryRun,
    note: change.note,
    counts: { total, changed, unchanged, failed, pending: total - changed - unchanged - failed },
    createdAt: timestampFromDate(change.createdAt),
    ...(change.completedAt == null ? {} : { completedAt: timestampFromDate(change.completedAt) }),
  };
}

function rowMessage(change: TargetChangeEntity, row: ShownRow): MessageInitShape<typeof TargetChangeRowSchema> {
  const status = statusOf(change, row);
  return {
    position: row.index,
    code: referenceOf(row),
    status,
    codeId: row.code_id === null ? '' : encodeId('qr', row.code_id),
    version: status === TargetRowStatus.PENDING ? 0 : (row.version ?? 0),
    reason: row.reason ?? '',
  };
}

function referenceOf({ reference_kind, reference }: ShownRow) {
  const value = reference ?? '';
  switch (reference_kind) {
    case 'id':
      return { case: 'id', value } as const;
    case 'short_code':
      return { case: 'shortCode', value } as const;
    case 'external_ref':
      return { case: 'externalRef', value } as const;
    case null:
      return { case: undefined } as const;
  }
}

function statusOf({ position }: TargetChangeEntity, { outcome, index }: ShownRow): TargetRowStatus {
  if (outcome !== null) return outcome === 'failed' ? TargetRowStatus.FAILED : TargetRowStatus.UNCHANGED;
  return index < position ? TargetRowStatus.CHANGED : TargetRowStatus.PENDING;
}

import { create } from '@bufbuild/protobuf';
import type { HandlerContext } from '@connectrpc/connect';
import type { Pool } from 'pg';
import { routeOf } from '../../../common/contract/route.ts';
import { promptStatement } from '../../../common/postgres/sql.ts';
import {
  type UpdateCodeRequest,
  type UpdateCodeResponse,
  UpdateCodeResponseSchema,
} from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { API_AUTHOR } from '../../access/audit.ts';
import { commitLimitOf } from '../../access/call-transaction.ts';
import { callerKey } from '../../access/caller.ts';
import { columnsOf, listed } from '../../db/columns.ts';
import { rowsOf, WAKE } from '../../events/outbox.ts';
import { recordsOf } from '../announce.ts';
import { type ScannedCodeRow, scannedCodeFrom } from '../code-row.ts';
import { CodeEntity } from '../entities.ts';
import type { IsPlatformHost } from '../fields/platform-hosts.ts';
import { TARGET_BEFORE, VERSIONS_OF_CHANGED } from '../target-versions.ts';
import { ANNOUNCE, ASKED, type CodeWrite, ENDING, HAS_TIME, limitInGroup, writeInGroups } from '../write-in-groups.ts';
import {
  CHANGED_COLUMNS,
  changedFields,
  changedPaths,
  changesTarget,
  expectChangeable,
  readColumns,
} from './update-code.ts';

/** The key of a code, its next version and the time of the change. */
const VERSION_COLUMNS = columnsOf(CodeEntity).filter(({ name }) =>
  ['account_id', 'id', 'version', 'updated_at'].includes(name),
);
/** Not the folder: its deletion removes codes from it before it gives them a new version. */
const WRITTEN_COLUMNS = CHANGED_COLUMNS.filter(({ name }) => name !== 'folder_id');
const ASKED_COLUMNS = [...VERSION_COLUMNS, ...WRITTEN_COLUMNS];

/**
 * Writes changed codes of any accounts with the versions of their targets and outbox rows, in a transaction of one
 * statement, and returns the ids of those written. Left out, each for a call that is then executed by itself: codes
 * that another transaction holds, so that a group waits for no lock and can't deadlock; those that were changed or
 * deleted after they were read, as their new version is no longer the next one; and those whose callers stop waiting
 * soon. Postgres ends the transaction when the first of the other callers stops waiting. Indexes: codes_pkey,
 * target_versions_pkey.
 */
const updateGroup = promptStatement<{ id: string }>(
  'codes_update_group',
  `with asked as materialized (
     ${ASKED(ASKED_COLUMNS)}
   ), ending as materialized (
     ${ENDING}
   ), locked as materialized (
     select asked.*
     from ending cross join asked join codes c on c.account_id = asked.account_id and c.id = asked.id
     where ${HAS_TIME} and c.version = asked.version - 1 and c.deleted_at is null
     for no key update of c skip locked
   ), changed as (
     update codes c
     set (${listed(WRITTEN_COLUMNS)}) = row(${listed(WRITTEN_COLUMNS, 'n')}),
         version = n.version, updated_at = greatest(c.updated_at, n.updated_at)
     from locked n where c.account_id = n.account_id and c.id = n.id
     returning ${TARGET_BEFORE}, c.*
   ), versions as (
     ${VERSIONS_OF_CHANGED(`'${API_AUTHOR}'`, `''`)}
   ), announced as (
     ${ANNOUNCE(ASKED_COLUMNS, 'select id from changed')}
   )
   select id, (${WAKE}) as woken from changed`,
);

/**
 * Returns a function that changes the code of a call by API key together with those of concurrent calls, as
 * `updateCode` does. It resolves to undefined, and has changed nothing, if the call has to be executed by itself:
 * because the request changes labels, or for one of the reasons at `updateGroup`.
 */
export function updateInGroups(options: {
  pool: Pool;
  platformUrl: string;
  isPlatformHost: IsPlatformHost;
  /** Finds a code of an account, or fails with NOT_FOUND. */
  findCode(accountId: string, id: string): Promise<ScannedCodeRow>;
}): (request: UpdateCodeRequest, context: HandlerContext) => Promise<UpdateCodeResponse | undefined> {
  const { pool, platformUrl, isPlatformHost, findCode } = options;
  const updateTogether = writeInGroups(pool, updateGroup, ASKED_COLUMNS, ({ row }: CodeWrite) => row);
  return async (request, context) => {
    const caller = context.values.get(callerKey);
    const paths = changedPaths(request);
    if (caller.kind !== 'key' || paths.has('folder') || paths.has('tags')) return undefined;
    const { account, rate } = caller;
    const columns = await readColumns(pool, isPlatformHost, account.id, request, paths);
    const before = await findCode(account.id, request.id);
    expectChangeable(before, columns);
    const changed = changedFields(before, { ...before, ...columns });
    const row =
      changed.length === 0 ? before : next({ ...before, ...columns }, changesTarget(changed), Number(rate.clock));
    const code = scannedCodeFrom(row, platformUrl);
    const route = routeOf(row);
    const response = create(UpdateCodeResponseSchema, { code, route });
    if (changed.length === 0) return response;
    const outbox = rowsOf(recordsOf(row, route, code, { type: 'qr.updated', changed }));
    const limit = limitInGroup(commitLimitOf(context), rate);
    return (await updateTogether({ row, outbox, ...limit, onceInGroup: row.id })) ? response : undefined;
  };
}

/** The row's next version. `now`: Postgres's clock when the call was admitted, in ms since 1970. */
function next(row: ScannedCodeRow, isTarget: boolean, now: number): ScannedCodeRow {
  return {
    ...row,
    target_version: row.target_version + (isTarget ? 1 : 0),
    version: String(BigInt(row.version) + 1n),
    updated_at: new Date(Math.max(row.updated_at.getTime(), now)),
  };
}

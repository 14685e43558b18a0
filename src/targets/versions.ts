import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { failure } from '../../common/contract/errors.ts';
import { PAGE_LIMIT } from '../../common/contract/ranges.ts';
import { first, type Queryable, run, statement } from '../../common/postgres/sql.ts';
import { storedPolicy } from '../../common/targets/policy.ts';
import type { ListTargetVersionsRequest } from '../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { type Cursors, positionAfter } from '../calls/cursors.ts';
import { endPage, pageOf } from '../calls/paging.ts';
import type { CodeRow } from '../codes/code-row.ts';
import { TargetVersionEntity } from '../codes/entities.ts';
import { columnsOf, listed, type RowOf } from '../db/columns.ts';

/** A version of a target as Postgres stores it. */
export type VersionRow = Omit<RowOf<TargetVersionEntity>, 'account_id' | 'code_id'>;

const COLUMNS = listed(columnsOf(TargetVersionEntity).filter(({ name }) => !['account_id', 'code_id'].includes(name)));

/** Index, of all: target_versions_pkey. */
const list = statement<VersionRow>(
  'targets_list',
  `select ${COLUMNS} from target_versions
   where account_id = $1 and code_id = $2 and ($3::int is null or version < $3) order by version desc limit $4`,
);

const byNumber = statement<VersionRow>(
  'targets_by_number',
  `select ${COLUMNS} from target_versions where account_id = $1 and code_id = $2 and version = $3`,
);

/** Versions become current in their order, from the millisecond that their `created_at` shows. */
const atInstant = statement<VersionRow>(
  'targets_at',
  `select ${COLUMNS} from target_versions
   where account_id = $1 and code_id = $2 and date_trunc('milliseconds', created_at) <= $3 order by version desc limit 1`,
);

/** The version that a code itself contains because its target was never changed. */
function impliedVersion({ target_url, policy, created_at }: CodeRow): VersionRow {
  return { version: 1, target_url: target_url ?? '', policy, author: '', note: '', created_at };
}

/** A version of a code's target. Fails with NOT_FOUND for one that the code never had. */
export async function findVersion(on: Queryable, code: CodeRow, version: number): Promise<VersionRow> {
  const found =
    code.target_version > 1
      ? await first(on, byNumber, [code.account_id, code.id, version])
      : [impliedVersion(code)].find((implied) => implied.version === version);
  if (!found) throw failure('NOT_FOUND', `The target of this code has no version ${version}.`);
  return found;
}

/** The version that was current at an instant. Fails with NOT_FOUND before the code was created. */
export async function findVersionAt(on: Queryable, code: CodeRow, at: Date): Promise<VersionRow> {
  const found =
    code.target_version > 1
      ? await first(on, atInstant, [code.account_id, code.id, at])
      : [impliedVersion(code)].find(({ created_at }) => created_at <= at);
  if (!found) throw failure('NOT_FOUND', 'The code did not exist at this time.');
  return found;
}

/** A page of versions, newest first. */
export async function listVersions(
  on: Queryable,
  cursors: Cursors,
  code: CodeRow,
  request: ListTargetVersionsRequest,
): Promise<{ items: readonly VersionRow[]; next: { nextCursor?: string } }> {
  const { limit } = pageOf(request, PAGE_LIMIT);
  const name = `target versions ${code.id}`;
  const below = positionAfter(cursors, name, request.cursor || undefined);
  const rows =
    code.target_version > 1
      ? await run(on, list, [code.account_id, code.id, below, limit + 1])
      : [impliedVersion(code)].filter(() => below === null);
  return endPage(rows, limit, [cursors, name], ({ version }) => String(version));
}

/** Converts a version to the message. */
export function targetFrom({ version, target_url, policy, author, note, created_at }: VersionRow) {
  return {
    version,
    targetUrl: target_url,
    ...(policy ? { policy: storedPolicy(policy) } : {}),
    author,
    note,
    createdAt: timestampFromDate(created_at),
  };
}

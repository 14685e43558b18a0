import { isDeepStrictEqual } from 'node:util';
import type { PoolClient } from 'pg';
import { failure } from '../../common/contract/errors.ts';
import { encodeId } from '../../common/contract/ids.ts';
import { routeOf } from '../../common/contract/route.ts';
import { run, statement } from '../../common/postgres/sql.ts';
import type { Code, UpdateCodeRequest } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import type { Route } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import { columnsOf, listed, parameters, valuesOf } from '../db/columns.ts';
import { scanCounts } from '../scans/reports/scan-counts.ts';
import { FOLDER, type Kind, type Label, TAG } from '../taxonomy/kinds.ts';
import { labelsOf, resolveLabels } from '../taxonomy/resolve.ts';
import { announce } from './announce.ts';
import { CHANGED, type CodeRow, codeFrom } from './code-row.ts';
import { CodeEntity } from './entities.ts';
import { findCode, lockCode } from './find-code.ts';
import { readLandingPage } from './landing-page.ts';
import type { IsPlatformHost } from './platform-hosts.ts';
import { tagsOrFailure } from './tags.ts';
import { targetOrFailure } from './target-url.ts';

/** The columns that a call may change, and what it calls them. */
const FIELDS = {
  target_url: 'target_url',
  name: 'name',
  paused: 'paused',
  folder_id: 'folder',
  landing_page: 'landing_page',
} as const satisfies Partial<Record<keyof CodeRow, string>>;
type Changeable = keyof typeof FIELDS;
const CHANGEABLE = Object.keys(FIELDS) as Changeable[];

const COLUMNS = columnsOf(CodeEntity).filter(({ name }) => name in FIELDS);

/** Index: codes_pkey. */
const update = statement(
  'codes_update',
  `update codes set (${listed(COLUMNS)}) = row(${parameters(COLUMNS, 3)}), ${CHANGED}
   where id = $1 and account_id = $2`,
);

/** Index: code_tags_pkey. */
const relabel = statement(
  'codes_relabel',
  `with wanted as (select unnest($2::uuid[]) as tag_id),
   dropped as (
     delete from code_tags where code_id = $1 and tag_id not in (select tag_id from wanted)
   )
   insert into code_tags (code_id, tag_id) select $1, tag_id from wanted on conflict do nothing`,
);

/** What a request changes: columns, and the tags if it names them. */
interface Changes {
  readonly columns: Partial<Pick<CodeRow, Changeable>>;
  readonly tags: readonly Label[] | undefined;
}

/** Changes what the request names, and tells of it if anything did change (`changed`). */
export async function updateCode(
  tx: PoolClient,
  { platformUrl, isPlatformHost }: { platformUrl: string; isPlatformHost: IsPlatformHost },
  accountId: string,
  request: UpdateCodeRequest,
): Promise<{ code: Code; route: Route; changed: boolean }> {
  const changes = await readChanges(tx, isPlatformHost, accountId, request);
  const before = await lockCode(tx, accountId, request.id);
  if (changes.columns.target_url !== undefined && before.type !== 'dynamic') {
    throw failure('NO_TARGET', 'Only dynamic codes have a target that can be changed.');
  }
  if (changes.columns.landing_page !== undefined && before.type !== 'landing_page') {
    throw failure('NO_TARGET', 'Only landing-page codes have a page that can be changed.');
  }
  const { row, changed } = await apply(tx, before, changes);
  const scans = (await scanCounts(tx, accountId, [row.id])).get(row.id) ?? 0;
  const code = codeFrom(row, platformUrl, scans);
  if (changed.length === 0) return { code, route: routeOf(row), changed: false };
  return { code, route: await announce(tx, row, code, { type: 'qr.updated', changed }), changed: true };
}

/**
 * Everything that can be wrong with a request fails here, before the code is looked for. Labels are locked before codes
 * everywhere, so that a change and the deletion of a folder never wait for each other in a circle.
 */
async function readChanges(
  tx: PoolClient,
  isPlatformHost: IsPlatformHost,
  accountId: string,
  request: UpdateCodeRequest,
): Promise<Changes> {
  const paths = new Set(request.updateMask?.paths);
  if (paths.size === 0)
    throw failure('NO_FIELDS', `Name at least one of ${[...Object.values(FIELDS), 'tags'].join(', ')}.`);
  const columns: Changes['columns'] = {};
  const tags = paths.has('tags') ? tagsOrFailure(request.tags) : undefined;
  if (paths.has('target_url')) columns.target_url = await targetOrFailure(tx, isPlatformHost, request.targetUrl ?? '');
  if (paths.has('landing_page')) columns.landing_page = readLandingPage(request.landingPage);
  if (paths.has('name')) columns.name = request.name || null;
  if (paths.has('paused')) columns.paused = request.paused;
  if (paths.has('folder')) {
    const folders = request.folder === undefined ? [] : [request.folder];
    columns.folder_id = (await labelsOrFailure(tx, FOLDER, accountId, folders))[0]?.id ?? null;
  }
  return { columns, tags: tags && (await labelsOrFailure(tx, TAG, accountId, tags)) };
}

async function apply(tx: PoolClient, before: CodeRow, changes: Changes): Promise<{ row: CodeRow; changed: string[] }> {
  const wanted = { ...before, ...changes.columns };
  const { tags } = changes;
  const relabelled =
    tags !== undefined &&
    !sameSet(
      before.tags,
      tags.map(({ name }) => name),
    );
  const changed: string[] = CHANGEABLE.filter((column) => !isDeepStrictEqual(wanted[column], before[column])).map(
    (column) => FIELDS[column],
  );
  if (relabelled) changed.push('tags');
  if (changed.length === 0) return { row: before, changed };

  if (relabelled) await run(tx, relabel, [before.id, tags.map(({ id }) => id)]);
  await run(tx, update, [before.id, before.account_id, ...valuesOf(COLUMNS, wanted)]);
  return { row: await findCode(tx, before.account_id, encodeId('qr', before.id)), changed };
}

/** The labels of references; of a call that changes all that it names or nothing, none may be missing. */
async function labelsOrFailure(
  tx: PoolClient,
  kind: Kind,
  accountId: string,
  references: readonly string[],
): Promise<readonly Label[]> {
  const { labels, warnings } = labelsOf(await resolveLabels(tx, kind, accountId, references), references);
  if (warnings[0] !== undefined) throw failure('INVALID_FIELD', warnings[0]);
  return labels;
}

function sameSet(one: readonly string[], other: readonly string[]): boolean {
  const names = new Set(other);
  return one.length === names.size && one.every((name) => names.has(name));
}

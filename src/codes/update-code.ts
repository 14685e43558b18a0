import { isDeepStrictEqual } from 'node:util';
import type { JsonValue } from '@bufbuild/protobuf';
import type { PoolClient } from 'pg';
import { failure } from '../../common/contract/errors.ts';
import { encodeId } from '../../common/contract/ids.ts';
import { routeOf } from '../../common/contract/route.ts';
import { run, statement } from '../../common/postgres/sql.ts';
import type { Code, UpdateCodeRequest } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import type { Route } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import { scanCounts } from '../scans/reports/scan-counts.ts';
import { FOLDER, type Kind, type Label, TAG } from '../taxonomy/kinds.ts';
import { labelsOf, resolveLabels } from '../taxonomy/resolve.ts';
import { announce } from './announce.ts';
import { type CodeRow, codeFrom } from './code-row.ts';
import { findCode, lockCode } from './find-code.ts';
import { readLandingPage } from './landing-page.ts';
import type { IsPlatformHost } from './platform-hosts.ts';
import { tagsOrFailure } from './tags.ts';
import { targetOrFailure } from './target-url.ts';

/** Index: codes_pkey. */
const update = statement(
  'codes_update',
  `update codes
   set target_url = $2, name = $3, paused = $4, folder_id = $5, landing_page = $7, version = version + 1,
       updated_at = now()
   where id = $1 and account_id = $6`,
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

const FIELDS = ['target_url', 'name', 'paused', 'folder', 'tags', 'landing_page'];

/** What a request changes; a field that it does not name is undefined. */
interface Changes {
  readonly targetUrl: string | undefined;
  readonly name: string | null | undefined;
  readonly paused: boolean | undefined;
  /** UUID. */
  readonly folderId: string | null | undefined;
  readonly tags: readonly Label[] | undefined;
  readonly landingPage: JsonValue | undefined;
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
  if (changes.targetUrl !== undefined && before.type !== 'dynamic') {
    throw failure('NO_TARGET', 'Only dynamic codes have a target that can be changed.');
  }
  if (changes.landingPage !== undefined && before.type !== 'landing_page') {
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
  if (paths.size === 0) throw failure('NO_FIELDS', `Name at least one of ${FIELDS.join(', ')}.`);
  const folder = paths.has('folder') ? (request.folder ?? null) : undefined;
  const tags = paths.has('tags') ? tagsOrFailure(request.tags) : undefined;
  const targetUrl = paths.has('target_url')
    ? await targetOrFailure(tx, isPlatformHost, request.targetUrl ?? '')
    : undefined;
  return {
    targetUrl,
    landingPage: paths.has('landing_page') ? readLandingPage(request.landingPage) : undefined,
    name: paths.has('name') ? request.name || null : undefined,
    paused: paths.has('paused') ? request.paused : undefined,
    folderId: typeof folder === 'string' ? (await labelsOrFailure(tx, FOLDER, accountId, [folder]))[0]?.id : folder,
    tags: tags && (await labelsOrFailure(tx, TAG, accountId, tags)),
  };
}

async function apply(tx: PoolClient, before: CodeRow, changes: Changes): Promise<{ row: CodeRow; changed: string[] }> {
  const wanted: CodeRow = {
    ...before,
    target_url: changes.targetUrl ?? before.target_url,
    name: changes.name === undefined ? before.name : changes.name,
    paused: changes.paused ?? before.paused,
    folder_id: changes.folderId === undefined ? before.folder_id : changes.folderId,
    landing_page: isDeepStrictEqual(changes.landingPage, before.landing_page)
      ? before.landing_page
      : (changes.landingPage ?? before.landing_page),
  };
  const { tags } = changes;
  const relabelled =
    tags !== undefined &&
    !sameSet(
      before.tags,
      tags.map(({ name }) => name),
    );
  const fields = ['target_url', 'name', 'paused', 'folder_id', 'landing_page'] as const;
  const changed: string[] = fields
    .filter((field) => wanted[field] !== before[field])
    .map((field) => (field === 'folder_id' ? 'folder' : field));
  if (relabelled) changed.push('tags');
  if (changed.length === 0) return { row: before, changed };

  if (relabelled) await run(tx, relabel, [before.id, tags.map(({ id }) => id)]);
  const { id, account_id, target_url, name, paused, folder_id, landing_page } = wanted;
  const page = landing_page ? JSON.stringify(landing_page) : null;
  await run(tx, update, [id, target_url, name, paused, folder_id, account_id, page]);
  return { row: await findCode(tx, before.account_id, encodeId('qr', id)), changed };
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

import { isDeepStrictEqual } from 'node:util';
import type { PoolClient } from 'pg';
import { failure } from '../../../common/contract/errors.ts';
import { routeOf } from '../../../common/contract/route.ts';
import { first, type Queryable, run, statement } from '../../../common/postgres/sql.ts';
import type { Code, UpdateCodeRequest } from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import type { Route } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import { expectWholeFields } from '../../calls/field-mask.ts';
import { columnsOf, listed, parameters, valuesOf } from '../../db/columns.ts';
import { expectStorable } from '../../db/storable.ts';
import type { Label } from '../../taxonomy/label-kinds.ts';
import { labelsOf, type ResolvedReferences, resolveLabels } from '../../taxonomy/resolve.ts';
import { announce } from '../announce.ts';
import { CHANGED, type CodeRow, SCANNED_CODE_COLUMNS, type ScannedCodeRow, scannedCodeFrom } from '../code-row.ts';
import { CodeEntity } from '../entities.ts';
import { readLandingPage } from '../fields/landing-page.ts';
import type { IsPlatformHost } from '../fields/platform-hosts.ts';
import { expectAllowedTagCount, tagsOrFailure } from '../fields/tags.ts';
import { targetOrFailure } from '../fields/target-url.ts';
import { lockCode } from '../find-code.ts';
import { addTargetVersion, type ChangeOfTarget } from '../target-versions.ts';

/** The columns that a call may change, with the names of the fields. */
const FIELDS = {
  target_url: 'target_url',
  policy: 'policy',
  name: 'name',
  paused: 'paused',
  folder_id: 'folder',
  landing_page: 'landing_page',
} as const satisfies Partial<Record<keyof CodeRow, string>>;
type Changeable = keyof typeof FIELDS;
const CHANGEABLE = Object.keys(FIELDS) as Changeable[];

/** The columns that a change writes beside those of `CHANGED`. */
export const CHANGED_COLUMNS = columnsOf(CodeEntity).filter(({ name }) => name in FIELDS || name === 'target_version');

/** Returns the code with its labels, which were changed before. Index: codes_pkey. */
const update = statement<ScannedCodeRow>(
  'codes_update',
  `update codes c set (${listed(CHANGED_COLUMNS)}) = row(${parameters(CHANGED_COLUMNS, 3)}), ${CHANGED}
   where id = $1 and account_id = $2 returning ${SCANNED_CODE_COLUMNS}`,
);

/** Index: code_tags_pkey. */
const replaceTags = statement(
  'codes_replace_tags',
  `with wanted as (select unnest($2::uuid[]) as tag_id),
   dropped as (
     delete from code_tags where code_id = $1 and tag_id not in (select tag_id from wanted)
   )
   insert into code_tags (code_id, tag_id) select $1, tag_id from wanted on conflict do nothing`,
);

/** The requested values of columns. */
export type ColumnChanges = Partial<Pick<CodeRow, Changeable>>;

/** The requested changes: columns, and the tags if the request contains them. */
interface Changes {
  readonly columns: ColumnChanges;
  readonly tags?: readonly Label[] | undefined;
}

/**
 * Changes the fields in the request's mask. If any value differs (`changed`), the change is announced. A target URL
 * also removes the policy, so that it takes effect immediately. `accountId`: UUID. `author`: of the version of the
 * target. Fails with NO_FIELDS, NOT_FOUND, NO_TARGET or INVALID_FIELD.
 */
export async function updateCode(
  tx: PoolClient,
  { platformUrl, isPlatformHost }: { platformUrl: string; isPlatformHost: IsPlatformHost },
  accountId: string,
  request: UpdateCodeRequest,
  author: string,
): Promise<{ code: Code; route: Route; changed: boolean }> {
  const changes = await readChanges(tx, isPlatformHost, accountId, request);
  const before = await lockCode(tx, accountId, request.id);
  expectChangeable(before, changes.columns);
  return changeLocked(tx, platformUrl, before, changes, { author, note: '' });
}

/**
 * Validates the request before the code is read. Every transaction locks labels before codes, so that a change of a
 * code and the deletion of a folder cannot deadlock.
 */
async function readChanges(
  tx: PoolClient,
  isPlatformHost: IsPlatformHost,
  accountId: string,
  request: UpdateCodeRequest,
): Promise<Changes> {
  const paths = changedPaths(request);
  const tags = paths.has('tags') ? tagsOrFailure(request.tags) : undefined;
  const columns = await readColumns(tx, isPlatformHost, accountId, request, paths);
  const folders = paths.has('folder') && request.folder !== undefined ? [request.folder] : [];
  const resolved = await resolveLabels(tx, accountId, { folders, tags: tags ?? [] });
  if (paths.has('folder')) columns.folder_id = labelsOrFailure(resolved.folders, folders)[0]?.id ?? null;
  const labels = tags && labelsOrFailure(resolved.tags, tags);
  if (labels) expectAllowedTagCount(labels);
  return { columns, tags: labels };
}

/** The fields that a mask may name. */
const MASKED = [...Object.values(FIELDS).filter((field) => field !== 'policy'), 'tags'];

/** The paths of the request's mask. Fails with NO_FIELDS without any, and with INVALID_FIELD for others. */
export function changedPaths({ updateMask }: UpdateCodeRequest): ReadonlySet<string> {
  if (!updateMask || updateMask.paths.length === 0) {
    throw failure('NO_FIELDS', `Set at least one of ${MASKED.join(', ')}.`);
  }
  expectWholeFields(updateMask, MASKED);
  return new Set(updateMask.paths);
}

/** The valid values of the fields in `paths` that are not labels. Fails with INVALID_FIELD. */
export async function readColumns(
  on: Queryable,
  isPlatformHost: IsPlatformHost,
  accountId: string,
  request: UpdateCodeRequest,
  paths: ReadonlySet<string>,
): Promise<ColumnChanges> {
  const columns: ColumnChanges = {};
  if (paths.has('target_url')) {
    columns.target_url = await targetOrFailure(on, isPlatformHost, accountId, request.targetUrl ?? '');
    columns.policy = null;
  }
  if (paths.has('landing_page')) columns.landing_page = readLandingPage(request.landingPage);
  if (paths.has('name')) {
    expectStorable({ name: request.name });
    columns.name = request.name || null;
  }
  if (paths.has('paused')) columns.paused = request.paused;
  return columns;
}

/** Fails with NO_TARGET if codes of this type don't have what is to be changed. */
export function expectChangeable({ type }: CodeRow, columns: ColumnChanges): void {
  if (columns.target_url !== undefined && type !== 'dynamic') {
    throw failure('NO_TARGET', 'Only dynamic codes have a target that can be changed.');
  }
  if (columns.landing_page !== undefined && type !== 'landing_page') {
    throw failure('NO_TARGET', 'Only landing-page codes have a page that can be changed.');
  }
}

/** The names of the fields whose columns differ. */
export function changedFields(before: CodeRow, after: CodeRow): string[] {
  return CHANGEABLE.filter((column) => !isDeepStrictEqual(after[column], before[column])).map(
    (column) => FIELDS[column],
  );
}

/** Whether a change of these fields is a new version of the code's target. */
export function changesTarget(fields: readonly string[]): boolean {
  return fields.includes('target_url') || fields.includes('policy');
}

/**
 * Changes a locked code and announces what differs (`changed`); another target is a new version (`version`). Returns
 * the code as it is then.
 */
export async function changeLocked(
  tx: PoolClient,
  platformUrl: string,
  before: ScannedCodeRow,
  changes: Changes,
  version: ChangeOfTarget,
): Promise<{ row: CodeRow; code: Code; route: Route; changed: boolean }> {
  const { row, changed } = await apply(tx, before, changes, version);
  const code = scannedCodeFrom(row, platformUrl);
  if (changed.length === 0) return { row, code, route: routeOf(row), changed: false };
  return { row, code, route: await announce(tx, row, code, { type: 'qr.updated', changed }), changed: true };
}

async function apply(
  tx: PoolClient,
  before: ScannedCodeRow,
  changes: Changes,
  version: ChangeOfTarget,
): Promise<{ row: ScannedCodeRow; changed: string[] }> {
  const after = { ...before, ...changes.columns };
  const { tags } = changes;
  const tagsChanged =
    tags !== undefined &&
    !sameSet(
      before.tags,
      tags.map(({ name }) => name),
    );
  const changed = changedFields(before, after);
  if (tagsChanged) changed.push('tags');
  if (changed.length === 0) return { row: before, changed };

  if (changesTarget(changed)) after.target_version = await addTargetVersion(tx, before, after, version);
  if (tagsChanged) await run(tx, replaceTags, [before.id, tags.map(({ id }) => id)]);
  const row = await first(tx, update, [before.id, before.account_id, ...valuesOf(CHANGED_COLUMNS, after)]);
  if (!row) throw new Error('a locked code does not exist');
  return { row, changed };
}

/** The labels of references. Fails with INVALID_FIELD if any has none, since an update is applied as a whole. */
export function labelsOrFailure(resolved: ResolvedReferences, references: readonly string[]): readonly Label[] {
  const { labels, warnings } = labelsOf(resolved, references);
  if (warnings[0] !== undefined) throw failure('INVALID_FIELD', warnings[0]);
  return labels;
}

function sameSet(one: readonly string[], other: readonly string[]): boolean {
  const names = new Set(other);
  return one.length === names.size && one.every((name) => names.has(name));
}

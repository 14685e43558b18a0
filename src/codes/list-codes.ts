import { create } from '@bufbuild/protobuf';
import type { Pool } from 'pg';
import { type Cursors, positionAfter } from '../../common/contract/cursors.ts';
import { failure } from '../../common/contract/errors.ts';
import { endPage, pageOf } from '../../common/contract/paging.ts';
import { PAGE_LIMIT } from '../../common/contract/ranges.ts';
import { first, run, statement } from '../../common/postgres/sql.ts';
import {
  type ListCodesRequest,
  type ListCodesResponse,
  ListCodesResponseSchema,
} from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { scanCounts } from '../scans/reports/scan-counts.ts';
import { hasAnyTag } from '../taxonomy/label-sql.ts';
import { isUnfiled } from '../taxonomy/names.ts';
import { existingFolder, existingTags } from '../taxonomy/resolve.ts';
import { CODE_COLUMNS, type CodeRow, codeFrom } from './code-row.ts';

/**
 * The condition for a combination of filters. Each combination has its own statement, so that Postgres chooses the
 * right index: codes_listed for all codes, codes_in_folder for a folder. Both return rows in order, so nothing is
 * sorted. $1 is the account, $2 the folder, $3 the tags, $4 the position after which the page starts.
 */
function condition({ folder, tags, cursor }: Filter): string {
  return [
    'c.account_id = $1 and c.deleted_at is null',
    folder === 'none'
      ? 'c.folder_id is null and $2::uuid is null'
      : folder === 'one'
        ? 'c.folder_id = $2::uuid'
        : '$2::uuid is null',
    tags ? hasAnyTag('$3') : '$3::uuid[] is null',
    cursor ? 'c.id < $4::uuid' : '$4::uuid is null',
  ].join(' and ');
}

interface Filter {
  readonly folder: 'any' | 'none' | 'one';
  readonly tags: boolean;
  readonly cursor: boolean;
}

/** Reads one row more than the page has, which shows whether another page follows. */
export const pageStatement = (filter: Filter) =>
  statement<CodeRow>(
    `codes_page_${nameOf(filter)}`,
    `select ${CODE_COLUMNS} from codes c where ${condition(filter)} order by c.id desc limit $5 + 1 offset $6`,
  );

/**
 * The total of all codes is a stored counter; the totals of filtered lists, and of codes after a cursor, are counted
 * for each call. Index: code_counts_pkey.
 */
const countAll = statement<{ total: string }>(
  'codes_count_all',
  'select listed as total from code_counts where account_id = $1',
);
const countFiltered = (filter: Filter) =>
  statement<{ total: string }>(
    `codes_count_${nameOf(filter)}`,
    `select count(*) as total from codes c where ${condition(filter)}`,
  );

const nameOf = ({ folder, tags, cursor }: Filter) => `${folder}_${tags ? 'tags' : 'all'}_${cursor ? 'after' : 'start'}`;

/**
 * Reads a page of the account's codes, newest first. `accountId`: UUID. Fails with INVALID_CURSOR or UNKNOWN_FOLDER.
 */
export async function listCodes(
  { pool, platformUrl, cursors }: { pool: Pool; platformUrl: string; cursors: Cursors },
  accountId: string,
  request: ListCodesRequest,
): Promise<ListCodesResponse> {
  const { limit, offset } = pageOf(request, PAGE_LIMIT);
  const after = positionAfter(cursors, accountId, request.cursor);
  const folder = request.folder === undefined ? 'any' : await folderFilter(pool, accountId, request.folder);
  const tags = request.tags.length === 0 ? null : await existingTags(pool, accountId, request.tags);

  const filter: Filter = {
    folder: typeof folder === 'string' ? folder : 'one',
    tags: tags !== null,
    cursor: after !== null,
  };
  const skipped = after === null ? offset : 0;
  const values = [accountId, typeof folder === 'string' ? null : folder.id, tags?.map(({ id }) => id) ?? null, after];
  const [rows, counted] = await Promise.all([
    run(pool, pageStatement(filter), [...values, limit, skipped]),
    filter.folder === 'any' && !filter.tags && !filter.cursor
      ? first(pool, countAll, [accountId])
      : first(pool, countFiltered(filter), values),
  ]);
  const { items, next } = endPage(rows, limit, [cursors, accountId], ({ id }) => id);
  const scans = await scanCounts(
    pool,
    accountId,
    items.map(({ id }) => id),
  );
  return create(ListCodesResponseSchema, {
    codes: items.map((row) => codeFrom(row, platformUrl, scans.get(row.id) ?? 0)),
    limit,
    ...(after === null ? { offset } : {}),
    ...next,
    total: BigInt(counted?.total ?? 0),
  });
}

async function folderFilter(pool: Pool, accountId: string, folder: string): Promise<'none' | { id: string }> {
  if (isUnfiled(folder)) return 'none';
  const found = await existingFolder(pool, accountId, folder);
  if (!found) throw failure('UNKNOWN_FOLDER', 'folder: no folder of this account has this id or name.');
  return found;
}

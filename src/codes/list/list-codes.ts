import { create } from '@bufbuild/protobuf';
import type { Pool } from 'pg';
import { failure } from '../../../common/contract/errors.ts';
import { decodeId } from '../../../common/contract/ids.ts';
import { PAGE_LIMIT } from '../../../common/contract/ranges.ts';
import { first, run, type Statement, statement } from '../../../common/postgres/sql.ts';
import {
  type ListCodesRequest,
  type ListCodesResponse,
  ListCodesResponseSchema,
} from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { type Cursors, positionAfter } from '../../calls/cursors.ts';
import { endPage, pageOf } from '../../calls/paging.ts';
import { expectStorable } from '../../db/storable.ts';
import { isUnfiled } from '../../taxonomy/names.ts';
import { existingFolder, existingTags } from '../../taxonomy/resolve.ts';
import { codeByShortCode } from '../code-lookups.ts';
import { SCANNED_CODE_COLUMNS, type ScannedCodeRow, scannedCodeFrom } from '../code-row.ts';
import { codeRows } from '../find-code.ts';
import {
  codesOf,
  countQuery,
  type Filter,
  type FilterValues,
  filterOf,
  idOf,
  indexedCondition,
  nameOfFilter,
  orderOf,
} from './code-filter.ts';
import { withSmallerIndex } from './smaller-index.ts';
import { testCodes } from './tested-codes.ts';

/** What a page is: its rows, one more if another page follows, and the total. */
interface ReadPage {
  readonly rows: readonly ScannedCodeRow[];
  readonly total: number;
  /** The UUID of the last code that was tested, if only some were. */
  readonly lastTested: string | null;
}

/**
 * Reads one row more than the page has, which shows whether another page follows. The rows before an offset are skipped
 * in the index alone, unless the list is by tags: reading 900,000 of them with their columns took 1 s, and in the index
 * 0.1 s. The rows contain the total if it is a stored counter.
 */
export const pageStatement = (filter: Filter, skips: boolean) => {
  const [codes, id, where, order] = [codesOf(filter), idOf(filter), indexedCondition(filter), orderOf(filter)];
  const first = `(select ${id} from ${codes} where ${where} order by ${order} limit 1 offset $7)`;
  const from = skips ? ` and ${id} ${filter.order === 'newest' ? '<=' : '>='} ${first}` : '';
  const total = countsAll(filter) ? `, (${countAll.text}) as total` : '';
  return statement<ScannedCodeRow & { readonly total?: string }>(
    `codes_page_${nameOfFilter(filter)}${skips ? '_skip' : ''}`,
    `select ${SCANNED_CODE_COLUMNS}${total} from ${codes} where ${where}${from} order by ${order} limit $6 + 1`,
  );
};

/**
 * The total of all codes is a stored counter; the totals of filtered lists are counted for each call. Index:
 * code_counts_pkey.
 */
const countAll = statement<{ total: string }>(
  'codes_count_all',
  'select listed as total from code_counts where account_id = $1',
);
const countFiltered = (filter: Filter) =>
  statement<{ total: string }>(
    `codes_count_${nameOfFilter(filter)}`,
    `select count as total from (${countQuery(filter)}) counted`,
  );

/**
 * Counts the codes after a cursor. If the cursor is in the first half, the codes before it are counted instead:
 * counting almost 1,000,000 took 0.24 s. Indexes: code_counts_pkey, codes_listed.
 */
const countAfter = (order: Filter['order']) => {
  const [before, after] = order === 'newest' ? ['>=', '<'] : ['<=', '>'];
  const half = '(select listed / 2 from counter)';
  return statement<{ total: string }>(
    `codes_count_after_${order}`,
    `with counter as materialized (select listed from code_counts where account_id = $1),
     skipped as materialized (
       select count(*) as number from (
         select from codes where account_id = $1 and deleted_at is null and id ${before} $2 limit ${half}
       ) counted
     )
     select case when number < ${half} then (select listed from counter) - number else
       (select count(*) from codes where account_id = $1 and deleted_at is null and id ${after} $2)
     end as total from skipped`,
  );
};

/**
 * Reads a page of the account's codes. `accountId`: UUID. Fails with INVALID_CURSOR, UNKNOWN_FOLDER or INVALID_FIELD.
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
  const { text, codeId } = await searchFilter(pool, accountId, request.search);

  const selected: Filter = {
    ...filterOf(request),
    folder: typeof folder === 'string' ? folder : 'one',
    tags: tags === null ? 'any' : 'read',
    cursor: after !== null,
    search: codeId === null ? (text === null ? 'none' : 'text') : 'code',
  };
  const folderId = typeof folder === 'string' ? null : folder.id;
  const values: FilterValues = [accountId, folderId, tags?.map(({ id }) => id) ?? null, after, codeId];
  const filter = await withSmallerIndex(pool, selected, values);
  const range = { limit, offset: after === null ? offset : 0 };
  const isTested = filter.state !== 'live' || filter.type !== 'any' || filter.search !== 'none';
  const read = isTested
    ? await readTested(pool, filter, values, { ...range, text })
    : await readPage(pool, filter, values, range);
  const { items, next } = endPage(read.rows, limit, [cursors, accountId], ({ id }) => id);
  const { lastTested } = read;
  return create(ListCodesResponseSchema, {
    codes: items.map((row) => scannedCodeFrom(row, platformUrl)),
    limit,
    ...(after === null ? { offset } : {}),
    ...(lastTested === null ? {} : { nextCursor: cursors.issue(accountId, lastTested) }),
    ...next,
    total: BigInt(read.total),
    totalIsLowerBound: lastTested !== null,
  });
}

async function readPage(
  pool: Pool,
  filter: Filter,
  values: FilterValues,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<ReadPage> {
  const [rows, counted] = await Promise.all([
    run(pool, pageStatement(filter, offset > 0), [...values, limit, ...(offset > 0 ? [offset] : [])]),
    countsAll(filter) ? undefined : first(pool, ...count(filter, values)),
  ]);
  const total = counted ?? rows[0] ?? (await first(pool, ...count(filter, values)));
  return { rows, total: Number(total?.total ?? 0), lastTested: null };
}

/** Whether the total of a list is the stored counter of all codes. */
function countsAll({ folder, tags, cursor }: Filter): boolean {
  return folder === 'any' && tags === 'any' && !cursor;
}

/** The statement that counts the codes of a list, with its parameters. */
function count(filter: Filter, values: FilterValues): readonly [Statement<{ total: string }>, readonly unknown[]] {
  const [accountId, , , after] = values;
  if (filter.folder !== 'any' || filter.tags !== 'any') return [countFiltered(filter), values];
  return after === null ? [countAll, [accountId]] : [countAfter(filter.order), [accountId, after]];
}

async function readTested(
  pool: Pool,
  filter: Filter,
  values: FilterValues,
  range: Parameters<typeof testCodes>[3],
): Promise<ReadPage> {
  const { ids, total, last } = await testCodes(pool, filter, values, range);
  const rows = ids.length === 0 ? [] : await codeRows(pool, values[0], ids);
  const byId = new Map(rows.map((row) => [row.id, row]));
  return { rows: ids.flatMap((id) => byId.get(id) ?? []), total, lastTested: last };
}

async function folderFilter(pool: Pool, accountId: string, folder: string): Promise<'none' | { id: string }> {
  if (isUnfiled(folder)) return 'none';
  const found = await existingFolder(pool, accountId, folder);
  if (!found) throw failure('UNKNOWN_FOLDER', 'folder: no folder of this account has this id or name.');
  return found;
}

/** The text to search for, or the UUID of the code whose id or short code it is. */
async function searchFilter(
  pool: Pool,
  accountId: string,
  search: string,
): Promise<{ text: string | null; codeId: string | null }> {
  const text = search.trim();
  // Postgres rejects NUL even in a parameter.
  expectStorable({ search: text });
  if (text === '') return { text: null, codeId: null };
  const codeId = decodeId('qr', text) ?? (await codeByShortCode(pool, accountId, text));
  return codeId === undefined ? { text, codeId: null } : { text: null, codeId };
}

import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { Pool } from 'pg';
import { LONG_PAGE_LIMIT } from '../../common/contract/ranges.ts';
import { COMMIT_WITHOUT_WAIT, promptStatement, run, statement } from '../../common/postgres/sql.ts';
import type { ListApiRequestsRequest } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import type { Cursors } from '../calls/cursors.ts';
import { pageById } from '../calls/paging.ts';
import { arrayParameters, arraysOf, columnsOf, fromExcluded, listed, type RowOf } from '../db/columns.ts';
import { ApiRequestEntity } from './entities.ts';

/** How many requests of an account are kept. Source: docs/dashboard.md, "API requests". */
export const KEPT_REQUESTS = 1_000;

/** A request as it is recorded, before it has a slot. */
export type RecordedRequest = Omit<RowOf<ApiRequestEntity>, 'slot'>;

const COLUMNS = columnsOf(ApiRequestEntity);
const RECORDED = COLUMNS.filter(({ name }) => name !== 'slot');
const CONTENT = RECORDED.filter(({ name }) => name !== 'account_id');

/**
 * Writes requests of any accounts, in their order, over the oldest ones of each account. The row of an account's count
 * is locked first, in the order of the accounts, so that concurrent statements can't deadlock. What is overwritten has
 * no other index, so that Postgres reuses the space within the page. Indexes: primary keys.
 */
const record = promptStatement(
  'access_record_api_requests',
  `with given as (
     select g.*, row_number() over (partition by account_id order by nth) as number,
       count(*) over (partition by account_id) as total
     from unnest(${arrayParameters(RECORDED)}) with ordinality as g (${listed(RECORDED)}, nth)
   ), counts as (
     insert into api_request_counts as c (account_id, recorded)
     select account_id, count(*) from given group by account_id order by account_id
     on conflict (account_id) do update set recorded = c.recorded + excluded.recorded
     returning account_id, recorded
   ), written as (
     insert into api_requests (${listed(RECORDED)}, slot)
     select ${listed(RECORDED, 'given')}, (counts.recorded - total + number) % ${KEPT_REQUESTS}
     from given join counts using (account_id)
     where number > total - ${KEPT_REQUESTS}
     on conflict (account_id, slot) do update set ${fromExcluded(CONTENT)}
   )
   select ${COMMIT_WITHOUT_WAIT}`,
);

/** Records requests; the last ones of an account replace those before them. */
export async function recordRequests(pool: Pool, requests: readonly RecordedRequest[]): Promise<void> {
  await run(pool, record, arraysOf(RECORDED, requests));
}

/** Reads all requests of the account, 1,000 at most. Index: api_requests_pkey. */
const list = statement<RecordedRequest>(
  'access_list_api_requests',
  `select ${listed(RECORDED)} from api_requests
   where account_id = $1 and id < $2 and ($3 = 0 or status / 100 = $3) and ($4 = '' or request_id = $4)
   order by id desc limit $5`,
);

/** A page of an account's API requests, newest first. `accountId`: UUID. */
export async function listRequests(
  { pool, cursors }: { pool: Pool; cursors: Cursors },
  accountId: string,
  request: ListApiRequestsRequest,
) {
  const { before, limit, end } = pageById([cursors, `api requests ${accountId}`], request, LONG_PAGE_LIMIT);
  const { statusClass, requestId } = request;
  const { items, next } = end(await run(pool, list, [accountId, before, statusClass, requestId, limit]));
  const requests = items.map(({ id, at, request_id, method, path, status, reason, duration_ms }) => ({
    id,
    requestId: request_id,
    at: timestampFromDate(at),
    method,
    path,
    status,
    reason: reason ?? '',
    durationMs: duration_ms,
  }));
  return { requests, ...next };
}

/** Locks the count first, as recording does; the requests are deleted with it. Index: api_request_counts_pkey. */
const erase = statement('access_delete_api_requests', 'delete from api_request_counts where account_id = $1');

/** Deletes the requests of a closed account. `accountId`: UUID. */
export async function deleteAccountApiRequests(pool: Pool, accountId: string): Promise<void> {
  await run(pool, erase, [accountId]);
}

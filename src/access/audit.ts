import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { HandlerContext } from '@connectrpc/connect';
import type { Pool } from 'pg';
import type { Cursors } from '../../common/contract/cursors.ts';
import { newUuid } from '../../common/contract/ids.ts';
import { pageById } from '../../common/contract/paging.ts';
import { LONG_PAGE_LIMIT } from '../../common/contract/ranges.ts';
import { type Queryable, run, statement } from '../../common/postgres/sql.ts';
import type { ListAuditEntriesRequest } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { accountOf, callerKey } from './caller.ts';

const insert = statement(
  'access_record_change',
  'insert into audit_entries (id, account_id, actor, action, subject) values ($1, $2, $3, $4, $5)',
);

/**
 * Adds an audit entry to an account, in the transaction of the change. Every method that changes something and that
 * only internal services may call does this. `subject`: the prefixed id of what was changed. `accountId`: UUID, needed
 * where the call does not act for an existing account.
 */
export async function recordChange(
  on: Queryable,
  context: HandlerContext,
  subject: string,
  accountId: string = accountOf(context).id,
): Promise<void> {
  const caller = context.values.get(callerKey);
  const actor = caller.kind === 'service' ? caller.actor : caller.kind;
  const action = `${context.service.name}/${context.method.name}`;
  await run(on, insert, [newUuid(), accountId, actor, action, subject]);
}

/** The same for methods that accounts may call too: calls by API key are not audited. */
export async function recordInternalChange(on: Queryable, context: HandlerContext, subject: string): Promise<void> {
  if (context.values.get(callerKey).kind === 'service') await recordChange(on, context, subject);
}

/** Audits a change made by the core itself, such as a domain that no longer resolves; `action`: a few words. */
export async function recordOwnChange(
  on: Queryable,
  accountId: string,
  action: string,
  subject: string,
): Promise<void> {
  await run(on, insert, [newUuid(), accountId, 'signpost', action, subject]);
}

interface EntryRow {
  id: string;
  at: Date;
  actor: string;
  action: string;
  subject: string;
}

/** Index: audit_entries_by_account. */
const list = statement<EntryRow>(
  'access_list_changes',
  `select id, at, actor, action, subject from audit_entries
   where account_id = $1 and id < $2 order by id desc limit $3 offset $4`,
);

/** A page of an account's audit, newest first. `accountId`: UUID. */
export async function listChanges(
  { pool, cursors }: { pool: Pool; cursors: Cursors },
  accountId: string,
  request: ListAuditEntriesRequest,
) {
  const { before, limit, offset, end } = pageById([cursors, `audit ${accountId}`], request, LONG_PAGE_LIMIT);
  const { items, next } = end(await run(pool, list, [accountId, before, limit, offset]));
  return { entries: items.map((row) => ({ ...row, at: timestampFromDate(row.at) })), ...next };
}

import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { HandlerContext } from '@connectrpc/connect';
import type { Pool } from 'pg';
import { newUuid } from '../../common/contract/ids.ts';
import { LONG_PAGE_LIMIT } from '../../common/contract/ranges.ts';
import { type Queryable, run, statement } from '../../common/postgres/sql.ts';
import type { ListAuditEntriesRequest } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import type { Cursors } from '../calls/cursors.ts';
import { pageById } from '../calls/paging.ts';
import { arrayParameters, arraysOf, columnsOf, listed, parameters, type RowOf, valuesOf } from '../db/columns.ts';
import { accountOf, callerKey } from './caller.ts';
import { AuditEntryEntity } from './entities.ts';

type EntryRow = RowOf<AuditEntryEntity>;

const COLUMNS = columnsOf(AuditEntryEntity);
/** What is written; Postgres sets the time. */
const NEW_COLUMNS = COLUMNS.filter(({ name }) => name !== 'at');

const insertEntry = statement(
  'access_record_change',
  `insert into audit_entries (${listed(NEW_COLUMNS)}) values (${parameters(NEW_COLUMNS)})`,
);

const insertEntries = statement(
  'access_record_changes',
  `insert into audit_entries (${listed(NEW_COLUMNS)}) select * from unnest(${arrayParameters(NEW_COLUMNS)})`,
);

async function insert(on: Queryable, entry: Omit<EntryRow, 'id' | 'at'>): Promise<void> {
  await run(on, insertEntry, valuesOf(NEW_COLUMNS, { id: newUuid(), ...entry }));
}

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
  await insert(on, { ...entryOf(context), account_id: accountId, subject });
}

/** Like `recordChange`, for methods that accounts may call too: calls by API key are not audited. */
export async function recordIfByService(on: Queryable, context: HandlerContext, subject: string): Promise<void> {
  if (context.values.get(callerKey).kind === 'service') await recordChange(on, context, subject);
}

/** Adds an entry for each of many subjects of one call. */
export async function recordChanges(
  on: Queryable,
  context: HandlerContext,
  subjects: readonly string[],
): Promise<void> {
  const entry = { ...entryOf(context), account_id: accountOf(context).id };
  const entries = subjects.map((subject) => ({ id: newUuid(), ...entry, subject }));
  await run(on, insertEntries, arraysOf(NEW_COLUMNS, entries));
}

/** Who calls which method. */
function entryOf(context: HandlerContext): Pick<EntryRow, 'actor' | 'action'> {
  const caller = context.values.get(callerKey);
  return {
    actor: caller.kind === 'service' ? caller.actor : caller.kind,
    action: `${context.service.name}/${context.method.name}`,
  };
}

/** The author of what a caller with the account's key changes. */
export const API_AUTHOR = 'api';

/** Who makes a change, for what is kept with it: `API_AUTHOR`, or the internal caller. */
export function authorOf(context: HandlerContext): string {
  const caller = context.values.get(callerKey);
  return caller.kind === 'service' ? caller.actor : API_AUTHOR;
}

/** Audits a change made by the core itself, such as a domain that no longer resolves; `action`: a few words. */
export async function recordOwnChange(
  on: Queryable,
  accountId: string,
  action: string,
  subject: string,
): Promise<void> {
  await insert(on, { account_id: accountId, actor: 'signpost', action, subject });
}

/** Index: audit_entries_by_account. */
const list = statement<EntryRow>(
  'access_list_changes',
  `select ${listed(COLUMNS)} from audit_entries
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
  const entries = items.map(({ id, at, actor, action, subject }) => ({
    id,
    at: timestampFromDate(at),
    actor,
    action,
    subject,
  }));
  return { entries, ...next };
}

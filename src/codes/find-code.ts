import type { PoolClient } from 'pg';
import { failure } from '../../common/contract/errors.ts';
import { decodeId } from '../../common/contract/ids.ts';
import { first, type Queryable, run, statement } from '../../common/postgres/sql.ts';
import { CODE_COLUMNS, type CodeRow } from './code-row.ts';

/** Index: codes_pkey. */
const find = statement<CodeRow>(
  'codes_find',
  `select ${CODE_COLUMNS} from codes c where c.id = $1 and c.account_id = $2 and c.deleted_at is null`,
);

/** Serializes changes of a code, so that their rows in the outbox are in the same order. Index: codes_pkey. */
const lock = statement(
  'codes_lock',
  'select from codes where id = $1 and account_id = $2 and deleted_at is null for update',
);

/** Finds a code of the account by its id `qr_…`. `accountId`: UUID. Fails with NOT_FOUND, also for deleted codes. */
export async function findCode(on: Queryable, accountId: string, id: string): Promise<CodeRow> {
  const uuid = decodeId('qr', id);
  const row = uuid === undefined ? undefined : await first(on, find, [uuid, accountId]);
  if (!row) throw failure('NOT_FOUND', 'There is no such code on this account.');
  return row;
}

/** Finds a code as `findCode` does and locks it until the transaction ends. */
export async function lockCode(tx: PoolClient, accountId: string, id: string): Promise<CodeRow> {
  const uuid = decodeId('qr', id);
  // Read after locking, so that the read sees what the previous holder of the lock committed.
  if (uuid !== undefined) await run(tx, lock, [uuid, accountId]);
  return findCode(tx, accountId, id);
}

/** Index: codes_pkey. */
const findAll = statement<CodeRow>(
  'codes_find_all',
  `select ${CODE_COLUMNS} from codes c where c.account_id = $1 and c.id = any($2::uuid[])`,
);

/** Ordered as in `deleteAccountCodes`, so that two transactions cannot deadlock. Index: codes_pkey. */
const lockAll = statement(
  'codes_lock_all',
  'select from codes where account_id = $1 and id = any($2::uuid[]) order by id desc for update',
);

/** Those of the codes that exist, deleted ones included, in any order. Ids are UUIDs. */
export function codeRows(on: Queryable, accountId: string, ids: readonly string[]): Promise<CodeRow[]> {
  return run(on, findAll, [accountId, ids]);
}

/** Reads codes as `codeRows` does, after locking them until the transaction ends. */
export async function lockCodes(tx: PoolClient, accountId: string, ids: readonly string[]): Promise<CodeRow[]> {
  await run(tx, lockAll, [accountId, ids]);
  return codeRows(tx, accountId, ids);
}

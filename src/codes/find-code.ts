import type { Pool, PoolClient } from 'pg';
import { decodeId } from '../../common/contract/ids.ts';
import { first, promptStatement, type Queryable, run, statement } from '../../common/postgres/sql.ts';
import { grouped } from '../../common/queues/grouped.ts';
import { notFound } from '../calls/not-found.ts';
import {
  COLUMNS_WITHOUT_CONTENT,
  type CodeRowWithoutContent,
  SCANNED_CODE_COLUMNS,
  type ScannedCodeRow,
} from './code-row.ts';

/** Index: codes_pkey. */
const find = statement<ScannedCodeRow>(
  'codes_find',
  `select ${SCANNED_CODE_COLUMNS} from codes c where c.id = $1 and c.account_id = $2 and c.deleted_at is null`,
);

/** Serializes changes of a code, so that their rows in the outbox are in the same order. Index: codes_pkey. */
const lock = statement(
  'codes_lock',
  'select from codes where id = $1 and account_id = $2 and deleted_at is null for update',
);

/** Finds a code of the account by its id `qr_…`. `accountId`: UUID. Fails with NOT_FOUND, also for deleted codes. */
export async function findCode(on: Queryable, accountId: string, id: string): Promise<ScannedCodeRow> {
  const uuid = decodeId('qr', id);
  return found(uuid === undefined ? undefined : await first(on, find, [uuid, accountId]));
}

function found(row: ScannedCodeRow | undefined): ScannedCodeRow {
  if (!row) throw notFound('code');
  return row;
}

/**
 * Like `find`, for codes of any accounts. The arrays are selected, so that the planner does not see their lengths: it
 * would plan the statement anew for every short one, which took as long as the rest. Index: codes_pkey.
 */
const findGroup = promptStatement<ScannedCodeRow & { readonly nth: number }>(
  'codes_find_group',
  `select asked.nth::integer as nth, ${SCANNED_CODE_COLUMNS}
   from unnest((select $1::uuid[]), (select $2::uuid[])) with ordinality as asked (id, account_id, nth)
   join codes c on c.id = asked.id and c.account_id = asked.account_id and c.deleted_at is null`,
);

/** Finding codes in groups. */
const GROUPS = { concurrency: 1, maxSize: 32, maxWaiting: 2_000, items: 'codes' };

/** Returns a function that finds a code as `findCode` does, together with those of concurrent calls. */
export function findInGroups(pool: Pool): (accountId: string, id: string) => Promise<ScannedCodeRow> {
  const findTogether = grouped<{ readonly uuid: string; readonly accountId: string }, ScannedCodeRow | undefined>({
    ...GROUPS,
    async work(calls) {
      const values = [calls.map(({ uuid }) => uuid), calls.map(({ accountId }) => accountId)];
      const rows = new Map((await run(pool, findGroup, values)).map((row) => [row.nth, row]));
      return calls.map((_, index) => rows.get(index + 1));
    },
  });
  return async (accountId, id) => {
    const uuid = decodeId('qr', id);
    return found(uuid === undefined ? undefined : await findTogether({ uuid, accountId }));
  };
}

/** Finds a code as `findCode` does and locks it until the transaction ends. */
export async function lockCode(tx: PoolClient, accountId: string, id: string): Promise<ScannedCodeRow> {
  const uuid = decodeId('qr', id);
  // Read after locking, so that the read sees what the previous holder of the lock committed.
  if (uuid !== undefined) await run(tx, lock, [uuid, accountId]);
  return findCode(tx, accountId, id);
}

/** Index: codes_pkey. */
const findAll = statement<ScannedCodeRow>(
  'codes_find_all',
  `select ${SCANNED_CODE_COLUMNS} from codes c where c.account_id = $1 and c.id = any($2::uuid[])`,
);

/** Index: codes_pkey. */
const findLocked = statement<CodeRowWithoutContent>(
  'codes_find_locked',
  `select ${COLUMNS_WITHOUT_CONTENT} from codes c where c.account_id = $1 and c.id = any($2::uuid[])`,
);

/** Ordered as in `deleteAccountCodes`, so that two transactions cannot deadlock. Index: codes_pkey. */
const lockAll = statement(
  'codes_lock_all',
  'select from codes where account_id = $1 and id = any($2::uuid[]) order by id desc for update',
);

/** The codes with these ids (UUIDs) that exist, deleted ones included, in any order. */
export function codeRows(on: Queryable, accountId: string, ids: readonly string[]): Promise<ScannedCodeRow[]> {
  return run(on, findAll, [accountId, ids]);
}

/** Finds the same codes, and locks them until the transaction ends. They are read after that, as in `lockCode`. */
export async function lockCodes(
  tx: PoolClient,
  accountId: string,
  ids: readonly string[],
): Promise<CodeRowWithoutContent[]> {
  await run(tx, lockAll, [accountId, ids]);
  return run(tx, findLocked, [accountId, ids]);
}

import { DatabaseError, type Pool, type PoolClient } from 'pg';
import { NIL_UUID } from '../../common/contract/ids.ts';
import { MAY_BE_IDLE } from '../../common/postgres/connection-options.ts';
import {
  first,
  promptStatement,
  type Queryable,
  run,
  statement,
  transaction,
  withConnection,
} from '../../common/postgres/sql.ts';
import { attemptEach } from '../../common/runtime/attempt-each.ts';
import { LOCKS } from '../db/locks.ts';
import { type Archive, archiveTable, lockArchives, SET_LOCK_TIMEOUT } from './archive/archive.ts';
import { removeAccount } from './archive/archive-file.ts';
import { foldIncrements, removeZeros } from './fold-increments.ts';

const insertRequest = statement(
  'scans_request_deletion',
  `insert into scan_deletions (account_id, asked_at) values ($1, now())
   on conflict (account_id) do update set asked_at = excluded.asked_at`,
);

/** Codes that are listed at a time. */
const MAX_CODES = 1_000;

/** The next codes after $2. Index: scan_totals_of_account. */
const listCodes = statement<{ code_id: string }>(
  'scans_list_codes_to_delete',
  `select code_id from scan_totals where account_id = $1 and code_id > $2 order by code_id limit ${MAX_CODES}`,
);

/** Index: primary key of scan_days; the updated column is in no index. */
const enterDeleted = statement(
  'scans_enter_deleted',
  `insert into scan_ledger as l (day, partition, deleted)
   select day, -1, scans from scan_days where code_id = $1 order by day
   on conflict (day, partition) do update set deleted = l.deleted + excluded.deleted`,
);

/** Indexes: scans_of_code in each month, and primary keys; in the order in which recorders write. */
const deletionsOfCode = [
  statement('scans_delete_of_code', 'delete from scans where code_id = $1'),
  // Visitors of earlier days are deleted already or within the hour.
  statement(
    'scans_delete_visitors_of_code',
    `delete from scan_visitors
     where day = any(array(select (now() at time zone 'utc')::date + generate_series(-2, 1))) and code_id = $1`,
  ),
  // A trigger deletes the days' counters of targets.
  statement('scans_delete_days_of_code', 'delete from scan_days where code_id = $1'),
  statement('scans_delete_hours_of_code', 'delete from scan_hours where code_id = $1'),
  statement('scans_delete_values_of_code', 'delete from scan_values where code_id = $1'),
  statement('scans_delete_total_of_code', 'delete from scan_totals where code_id = $1'),
];

const readClock = statement<{ now: string }>(
  'scans_read_clock',
  `select (clock_timestamp() at time zone 'utc')::text as now`,
);
const listNewArchives = statement<Pick<Archive, 'month' | 'part'>>(
  'scans_list_new_archives',
  `select to_char(month, 'YYYY-MM') as month, part from scan_archives
   where archived_at >= coalesce((select done_at from scan_deletions where account_id = $1), '-infinity')
   order by 1, 2`,
);
/** Index: scan_archives_pkey. */
const findArchive = statement<Archive>(
  'scans_find_archive',
  `select to_char(month, 'YYYY-MM') as month, part, file, scans::float8 as scans from scan_archives
   where month = $1 and part = $2`,
);
const countArchive = statement(
  'scans_count_archive',
  'update scan_archives set scans = $3 where month = $1 and part = $2',
);
const finish = statement(
  'scans_finish_deletion',
  `update scan_deletions set done_at = $2::timestamp at time zone 'utc' where account_id = $1`,
);

/**
 * Waits for the transactions of running recorders and blocks new ones until this transaction ends. Recorders that come
 * later queue behind the waiting lock request, so it times out; the deletion then continues at its next call.
 */
const LOCK_OUT_RECORDERS = `${SET_LOCK_TIMEOUT}; lock table scans in share mode`;

/** SQLSTATEs of serialization failures and deadlocks. */
const CONFLICTS = new Set(['40001', '40P01']);
/** Attempts to delete the scans of a code while recorders run; further ones lock them out. */
const CONCURRENT_ATTEMPTS = 3;

/** Requests the deletion of an account's scans, in the caller's transaction. `accountId`: UUID. */
export async function requestDeletion(on: Queryable, accountId: string): Promise<void> {
  await run(on, insertRequest, [accountId]);
}

/**
 * Deletes all scans of an account (a UUID) and their counters, archives included; scans answered before now that arrive
 * later are deleted on arrival. Repeatable: a repeated call continues where it was interrupted, and a later one also
 * deletes what was scanned since. `folder`: the folder of archive files.
 */
export async function deleteAccountScans(pool: Pool, folder: string, accountId: string): Promise<void> {
  await requestDeletion(pool, accountId);
  await finishDeletion(pool, folder, accountId);
}

const listUnfinished = statement<{ account_id: string }>(
  'scans_list_unfinished_deletions',
  'select account_id from scan_deletions where done_at is null or done_at < asked_at',
);

const lockDeletions = promptStatement<{ acquired: boolean }>(
  'scans_lock_deletions',
  'select pg_try_advisory_lock($1) as acquired',
);

/**
 * Finishes interrupted deletions, each as far as possible; then rejects with the first failure. Does nothing while
 * another process does it: two of them would delete the same scans and lock each other out. `signal`: when to stop,
 * after the code at hand or while an archive is rewritten.
 */
export async function finishDeletions(pool: Pool, folder: string, signal?: AbortSignal): Promise<void> {
  await withConnection(pool, async ({ client, markBroken }) => {
    if (!(await first(client, lockDeletions, [LOCKS.scanDeletions]))?.acquired) return;
    try {
      await attemptEach(await run(client, listUnfinished), ({ account_id }) =>
        finishDeletion(pool, folder, account_id, signal),
      );
    } finally {
      await client.query(`select pg_advisory_unlock(${LOCKS.scanDeletions})`).catch(markBroken);
    }
  });
}

/**
 * Carries out a requested deletion, as `deleteAccountScans`. Rejects with an error for which `isUnavailable` is true
 * when recorders cannot be locked out in time.
 */
export async function finishDeletion(
  pool: Pool,
  folder: string,
  accountId: string,
  signal?: AbortSignal,
): Promise<void> {
  signal?.throwIfAborted();
  // Waits for recorders that began before the request; later ones see the request.
  await transaction(pool, (tx) => tx.query(LOCK_OUT_RECORDERS));
  for await (const codeId of scannedCodes(pool, accountId)) {
    signal?.throwIfAborted();
    await deleteScansOfCode(pool, codeId);
  }
  // Counters of the account and of weeks contain the values of the scans, so they go now and not with the next
  // recorder.
  await foldIncrements(pool);
  await removeZeros(pool, accountId);
  const { now, archives } = await transaction(pool, async (tx) => {
    await lockArchives(tx);
    return { now: (await first(tx, readClock))?.now, archives: await run(tx, listNewArchives, [accountId]) };
  });
  // An archive that can't be read must not keep the scans in the others.
  await attemptEach(archives, async (archive) => {
    signal?.throwIfAborted();
    await deleteFromArchive(pool, folder, archive, accountId, signal);
  });
  await run(pool, finish, [accountId, now]);
}

/** The ids of the account's codes that have scans, oldest first. */
async function* scannedCodes(pool: Pool, accountId: string): AsyncGenerator<string> {
  for (let last: string | undefined = NIL_UUID; last !== undefined; ) {
    const page: { code_id: string }[] = await run(pool, listCodes, [accountId, last]);
    for (const { code_id } of page) yield code_id;
    last = page.length < MAX_CODES ? undefined : page.at(-1)?.code_id;
  }
}

/**
 * Deletes the rows of one code and their counters from a single snapshot, so that the two stay consistent. On a
 * conflict with a recorder it is repeated, and after a few attempts it locks recorders out.
 */
async function deleteScansOfCode(pool: Pool, codeId: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await transaction(pool, async (tx) => {
        await tx.query('set transaction isolation level repeatable read');
        if (attempt > CONCURRENT_ATTEMPTS) await tx.query(LOCK_OUT_RECORDERS);
        await run(tx, enterDeleted, [codeId]);
        for (const remove of deletionsOfCode) await run(tx, remove, [codeId]);
      });
      return;
    } catch (error) {
      if (!(error instanceof DatabaseError && CONFLICTS.has(error.code ?? ''))) throw error;
    }
  }
}

async function deleteFromArchive(
  pool: Pool,
  folder: string,
  { month, part }: Pick<Archive, 'month' | 'part'>,
  accountId: string,
  signal?: AbortSignal,
): Promise<void> {
  await transaction(pool, async (tx) => {
    await lockArchives(tx);
    // While the file is rewritten.
    await tx.query(MAY_BE_IDLE);
    const key = [`${month}-01`, part];
    const archive = await first(tx, findArchive, key);
    if (archive) await run(tx, countArchive, [...key, await deleteScans(tx, folder, archive, accountId, signal)]);
  });
}

/** Returns the number of scans left in the archive. */
async function deleteScans(
  tx: PoolClient,
  folder: string,
  archive: Archive,
  accountId: string,
  signal?: AbortSignal,
): Promise<number> {
  if (archive.file !== null) return removeAccount(folder, archive.file, accountId, signal);
  const { rowCount } = await tx.query(`delete from ${archiveTable(archive)} where account_id = $1`, [accountId]);
  return archive.scans - (rowCount ?? 0);
}

import { DatabaseError, type Pool, type PoolClient } from 'pg';
import { type Queryable, run, statement, transaction } from '../../common/postgres/sql.ts';
import { type Archive, archiveTable, lockArchives, PATIENCE } from './archive/archive.ts';
import { rewriteWithout } from './archive/archive-file.ts';

const ASK = statement(
  'ask_to_delete_scans',
  `insert into scan_deletions (account_id, asked_at) values ($1, now())
   on conflict (account_id) do update set asked_at = excluded.asked_at`,
);

// `scan_totals_of_account`.
const COUNTED = statement<{ code_id: string }>(
  'delete_scans_of',
  'select code_id from scan_totals where account_id = $1 order by code_id',
);

// Primary key of scan_days; what changes is in no index.
const ENTER_DELETED = statement(
  'enter_deleted_scans',
  `insert into scan_ledger as l (day, partition, deleted)
   select day, -1, scans from scan_days where code_id = $1 order by day
   on conflict (day, partition) do update set deleted = l.deleted + excluded.deleted`,
);

// `scans_of_code` in each month, and primary keys; in the order in which recorders write.
const DELETE_CODE = [
  statement('delete_scans_of_code', 'delete from scans where code_id = $1'),
  // Of days before these nobody is remembered, or not for long.
  statement(
    'delete_visitors_of_code',
    'delete from scan_visitors where day = any(array(select current_date + generate_series(-2, 1))) and code_id = $1',
  ),
  statement('delete_days_of_code', 'delete from scan_days where code_id = $1'),
  statement('delete_hours_of_code', 'delete from scan_hours where code_id = $1'),
  statement('delete_values_of_code', 'delete from scan_values where code_id = $1'),
  statement('delete_total_of_code', 'delete from scan_totals where code_id = $1'),
];

const NEW_ARCHIVES = statement<Archive>(
  'scan_archives_to_delete_from',
  `select to_char(month, 'YYYY-MM') as month, part, file, scans::float8 as scans from scan_archives
   where archived_at >= coalesce((select done_at from scan_deletions where account_id = $1), '-infinity')
   order by 1, 2`,
);
const COUNT_ARCHIVE = statement(
  'count_scan_archive',
  'update scan_archives set scans = $3 where month = $1 and part = $2',
);
const DONE = statement(
  'scans_are_deleted',
  'update scan_deletions set done_at = clock_timestamp() where account_id = $1',
);

/**
 * Keeps recorders out until the transaction ends, once those that began before have ended. Recorders that come later
 * wait behind whoever waits for this lock, so it gives way after `PATIENCE`; the deletion then goes on at its next call.
 */
const LOCK_OUT_RECORDERS = `${PATIENCE}; lock table scans in share mode`;

/** SQLSTATEs of a transaction that another one came in between of. */
const CROSSED = new Set(['40001', '40P01']);
/** How often a deletion is tried beside recorders. */
const UNDISTURBED = 3;

/** Asks for the deletion of an account's scans, in the caller's transaction. `accountId`: UUID. */
export async function askToDelete(on: Queryable, accountId: string): Promise<void> {
  await run(on, ASK, [accountId]);
}

/**
 * Deletes every scan of an account (a UUID) and what was counted of it, archives included; those that were answered by
 * now and arrive later are deleted as they come. Repeatable: it goes on where it was interrupted, and later calls take
 * what was scanned since. `folder`: where archives' files are.
 */
export async function deleteAccountScans(pool: Pool, folder: string, accountId: string): Promise<void> {
  await askToDelete(pool, accountId);
  await finishDeletion(pool, folder, accountId);
}

const UNFINISHED = statement<{ account_id: string }>(
  'unfinished_scan_deletions',
  'select account_id from scan_deletions where done_at is null or done_at < asked_at',
);

/** Does what deletions that were interrupted have left. */
export async function finishDeletions(pool: Pool, folder: string): Promise<void> {
  for (const { account_id } of await run(pool, UNFINISHED)) await finishDeletion(pool, folder, account_id);
}

/**
 * Does what `askToDelete` asked for, as `deleteAccountScans`. Rejects with an error that `isUnavailable` knows when recorders
 * can't be locked out in time.
 */
export async function finishDeletion(pool: Pool, folder: string, accountId: string): Promise<void> {
  // Recorders that began before it was asked for end first; later ones see it.
  await transaction(pool, (tx) => tx.query(LOCK_OUT_RECORDERS));
  for (const { code_id } of await run(pool, COUNTED, [accountId])) await deleteCode(pool, code_id);
  await transaction(pool, async (tx) => {
    await lockArchives(tx);
    for (const archive of await run(tx, NEW_ARCHIVES, [accountId])) {
      const scans = await deleteFromArchive(tx, folder, archive, accountId);
      await run(tx, COUNT_ARCHIVE, [`${archive.month}-01`, archive.part, scans]);
    }
    await run(tx, DONE, [accountId]);
  });
}

/**
 * Deletes what there is of one code at one moment, so that counters go on telling what the rows tell. Where recorders
 * come in between, it begins again, and after some times makes them wait.
 */
async function deleteCode(pool: Pool, codeId: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await transaction(pool, async (tx) => {
        await tx.query('set transaction isolation level repeatable read');
        if (attempt > UNDISTURBED) await tx.query(LOCK_OUT_RECORDERS);
        await run(tx, ENTER_DELETED, [codeId]);
        for (const remove of DELETE_CODE) await run(tx, remove, [codeId]);
      });
      return;
    } catch (error) {
      if (!(error instanceof DatabaseError && CROSSED.has(error.code ?? ''))) throw error;
    }
  }
}

/** Gives how many scans are left in it. */
async function deleteFromArchive(tx: PoolClient, folder: string, archive: Archive, accountId: string): Promise<number> {
  if (archive.file !== null) return rewriteWithout(folder, archive.file, accountId);
  const { rowCount } = await tx.query(`delete from ${archiveTable(archive)} where account_id = $1`, [accountId]);
  return archive.scans - (rowCount ?? 0);
}

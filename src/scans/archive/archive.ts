import type { Pool, PoolClient } from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { MAY_BE_IDLE } from '../../../common/postgres/connection-options.ts';
import { first, type Queryable, run, statement, transaction } from '../../../common/postgres/sql.ts';
import { attemptEach } from '../../../common/runtime/attempt-each.ts';
import { LOCKS } from '../../db/locks.ts';
import { monthOf, monthsInTable, monthsLater, partitionOf } from '../partitions.ts';
import { ARCHIVED_COLUMNS, writeArchive } from './archive-file.ts';

/** Which scans are archived, and where to. */
export interface ArchiveOptions {
  /** How many months before the current one stay in the table; 0: all. */
  readonly hotMonths: number;
  /** A separate table, left in Postgres, or a file. */
  readonly to: 'table' | 'file';
  /** Folder of the files, shared by all cores. */
  readonly folder: string;
}

/** An archived part of a month: scans that arrive after their month was archived form further parts. */
export interface Archive {
  /** `YYYY-MM`. */
  readonly month: string;
  readonly part: number;
  /** File name; null while the scans are in a table. */
  readonly file: string | null;
  readonly scans: number;
}

/** Limits how long a transaction waits for a lock while others queue behind it; it is retried the next time. */
export const SET_LOCK_TIMEOUT = `set local lock_timeout = '3s'`;
/** Ids per row: 16 kB. */
const IDS_IN_ROW = 1_000;

/** The table of an archive. */
export function archiveTable({ month, part }: Pick<Archive, 'month' | 'part'>): string {
  return `${partitionOf(month)}_part${part}`;
}

/**
 * Moves months that are old enough out of `scans`. Counters stay unchanged. A run that is killed at any point is
 * continued by the next: a month's scans are in `scans`, then in a table of their own, then in a complete file, and
 * always in exactly one of them. Any number of processes may do this at once. `signal`: when to stop, before the next
 * month or while a file is written.
 */
export async function archiveMonths(
  pool: Pool,
  { hotMonths, to, folder }: ArchiveOptions,
  now: number,
  signal?: AbortSignal,
): Promise<void> {
  if (hotMonths === 0) return;
  const oldest = monthsLater(monthOf(now), -hotMonths);
  for (const month of await monthsInTable(pool)) {
    signal?.throwIfAborted();
    if (month < oldest) await detach(pool, month);
  }
  if (to === 'table') return;
  // An archive that can't be moved must not keep the others in Postgres.
  await attemptEach(await run(pool, listInTables), async (archive) => {
    signal?.throwIfAborted();
    await moveToFile(pool, folder, archive, signal);
  });
}

/** Whether a month can be archived under any configuration: the current month and the one before never are. */
export function mayBeArchived(month: string, now: number): boolean {
  return month < monthsLater(monthOf(now), -1);
}

/** Lets one process at a time change archives, until the end of the transaction. */
export async function lockArchives(tx: PoolClient): Promise<void> {
  await tx.query('select pg_advisory_xact_lock($1)', [LOCKS.scanArchives]);
}

const findNextPart = statement<{ part: number }>(
  'scans_find_next_archive',
  'select (coalesce(max(part), 0) + 1)::integer as part from scan_archives where month = $1',
);
const enterArchive = statement(
  'scans_enter_archive',
  'insert into scan_archives (month, part, scans, archived_at) values ($1, $2, $3, clock_timestamp())',
);

/** Detaches a month from `scans` and stores the ids of its scans permanently. */
function detach(pool: Pool, month: string): Promise<void> {
  const partition = partitionOf(month);
  return transaction(pool, async (tx) => {
    await lockArchives(tx);
    await tx.query(SET_LOCK_TIMEOUT);
    if (!(await monthsInTable(tx)).includes(month)) return;
    // Blocks inserts of late scans, so that the stored ids are exactly those detached.
    await tx.query(`lock table ${partition} in exclusive mode`);
    const day = `${month}-01`;
    const { part = 1 } = (await first(tx, findNextPart, [day])) ?? {};
    const { rows } = await tx.query<{ scans: number }>(
      `with stored as (
         insert into scan_archived_ids (month, part, first_id, ids)
         select $1, $2, (array_agg(id order by id))[1], string_agg(uuid_send(id), '' order by id)
         from (select id, (row_number() over (order by id) - 1) / ${IDS_IN_ROW} as chunk from ${partition}) numbered
         group by chunk
         returning length(ids) / 16 as scans
       )
       select coalesce(sum(scans), 0)::float8 as scans from stored`,
      [day, part],
    );
    const scans = rows[0]?.scans ?? 0;
    await tx.query(`alter table scans detach partition ${partition}`);
    if (scans === 0) {
      await tx.query(`drop table ${partition}`);
    } else {
      await tx.query(`alter table ${partition} rename to ${archiveTable({ month, part })}`);
      await run(tx, enterArchive, [day, part, scans]);
    }
  });
}

const listInTables = statement<Pick<Archive, 'month' | 'part'>>(
  'scans_list_archives_in_tables',
  `select to_char(month, 'YYYY-MM') as month, part from scan_archives where file is null order by 1, 2`,
);
/** Index: scan_archives_pkey. */
const scansInTable = statement<Pick<Archive, 'scans'>>(
  'scans_count_in_table',
  'select scans::float8 as scans from scan_archives where month = $1 and part = $2 and file is null',
);
const nameFile = statement(
  'scans_name_archive_file',
  'update scan_archives set file = $3 where month = $1 and part = $2',
);

/** Moves an archive from its table to a file, unless another process has done so. */
function moveToFile(
  pool: Pool,
  folder: string,
  archive: Pick<Archive, 'month' | 'part'>,
  signal?: AbortSignal,
): Promise<void> {
  const { month, part } = archive;
  return transaction(pool, async (tx) => {
    await lockArchives(tx);
    // Until the file is on disk.
    await tx.query(MAY_BE_IDLE);
    const scans = (await first(tx, scansInTable, [`${month}-01`, part]))?.scans;
    if (scans === undefined) return;
    const table = archiveTable(archive);
    const file = `scans-${month}-part${part}.csv.gz`;
    const rows = tx.query(
      copyTo(`copy (select ${ARCHIVED_COLUMNS} from ${table} order by scanned_at, id) to stdout (format csv, header)`),
    );
    rows.on('error', () => undefined);
    await writeArchive(folder, file, rows, signal).catch(async (error: unknown) => {
      // Nothing reads the rest of the COPY, so a rollback would wait behind it for ever and block everyone else:
      // disconnect.
      await tx.end();
      throw error;
    });
    if (rows.rowCount !== scans) throw new Error(`${table} holds ${rows.rowCount} scans and should hold ${scans}`);
    await run(tx, nameFile, [`${month}-01`, part, file]);
    // A backup may be reading the table.
    await tx.query(`${SET_LOCK_TIMEOUT}; drop table ${table}`);
  });
}

const listArchives = statement<Archive>(
  'scans_list_archives',
  `select to_char(month, 'YYYY-MM') as month, part, file, scans::float8 as scans from scan_archives
   where month between $1 and $2 order by 1, 2`,
);

/** The archives of the months from `from` to `to` (ms since 1970), both included, oldest first. */
export function archivesOf(on: Queryable, { from, to }: { from: number; to: number }): Promise<Archive[]> {
  return run(on, listArchives, [`${monthOf(from)}-01`, `${monthOf(to)}-01`]);
}

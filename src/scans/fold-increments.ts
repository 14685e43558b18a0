import type { Pool, PoolClient } from 'pg';
import { first, run, statement, transaction } from '../../common/postgres/sql.ts';
import { LOCKS } from '../db/locks.ts';

/** Maximum increments folded per transaction: those of polls of about 5,000 codes. */
const MAX_INCREMENTS = 10_000;
/**
 * Once those have this many names, further ones are left for the next transaction. Increments of such polls have fewer.
 */
const MAX_NAMES = 100_000;
/**
 * Enough memory to sum that many increments, three times about 100,000 values, without temporary files. And a plan that
 * reads them by index: it is made once, perhaps while there are none, and used until Postgres has statistics of many.
 */
const SETTINGS = `set local work_mem = '64MB'; set local enable_seqscan = off`;
/**
 * Sizes of a row's names as they are stored, in bytes. With every addition a row of up to `ALWAYS_MERGED` (about 1,000
 * names) is merged. A larger one is merged only once half as many names have been added since, so that a day with a
 * million invented referrers is not rewritten every few seconds; and one of more than `MAX_MERGED` (about 100,000
 * names) is not, as memory must hold a merged row, and Postgres stores at most 1 GB.
 */
const [ALWAYS_MERGED, MAX_MERGED] = [16_384, 2_097_152];

/**
 * Sums `parts`, rows with the columns of `scan_rollups`, into one row for each subject and period. Zeros are left out.
 */
const INSERT_SUMS = `
  insert into scan_rollups (subject_id, days, start, account_id, scans, unique_scans, names, counts)
  select subject_id, days, start, account_id, sum(scans), sum(unique_scans),
         coalesce(array_agg(name) filter (where name is not null), '{}'),
         coalesce(array_agg(count) filter (where name is not null), '{}')
  from (
    select subject_id, days, start, account_id, name,
           sum(count)::bigint as count, sum(scans) as scans, sum(unique_scans) as unique_scans
    from (
      select subject_id, days, start, account_id, unnest(names) as name, unnest(counts) as count,
             0 as scans, 0 as unique_scans
      from parts
      union all
      select subject_id, days, start, account_id, null, 0, scans, unique_scans from parts where days = 1
    ) each
    group by 1, 2, 3, 4, 5 having sum(count) <> 0 or sum(scans) <> 0 or sum(unique_scans) <> 0
  ) counted
  group by 1, 2, 3, 4`;

/**
 * Indexes: primary keys and scan_rollups_of_subject. A statement sees either an increment or the rows that it was
 * folded into. The size of a large value is known without reading it.
 */
const fold = statement<{ last: string | null; more: boolean }>(
  'scans_fold_increments',
  `with oldest as (
     select id, sum(cardinality(names)) over (order by id rows between unbounded preceding and 1 preceding) as before
     from (select id, names from scan_increments where id > $1 order by id limit ${MAX_INCREMENTS}) listed
   ), taken as (
     delete from scan_increments
     where id > $1 and id <= (select max(id) from oldest where coalesce(before, 0) < ${MAX_NAMES})
     returning *
   ), shares as materialized (
     select share.*, account_id, names, counts
     from taken t cross join lateral (
       values (code_id, 7::smallint, day - (day - date '2018-01-01') % 7, 0::bigint, 0::bigint),
              (account_id, 7, day - (day - date '2018-01-01') % 7, 0, 0),
              (account_id, 1, day, t.scans, t.unique_scans)
     ) as share (subject_id, days, start, scans, unique_scans)
   ), merged as (
     delete from scan_rollups r using (
       select id, newer <= ${MAX_MERGED} and (reduces or bytes <= greatest(${ALWAYS_MERGED}, 2 * (added + newer - bytes)))
                as small
       from (
         select r.id, n.reduces, n.bytes as added, pg_column_size(r.names) as bytes,
                sum(pg_column_size(r.names)) over (partition by r.subject_id, r.days, r.start order by r.id desc) as newer
         from (
           select subject_id, days, start, sum(pg_column_size(names)) as bytes,
                  coalesce(bool_or(counts[1] < 0), false) as reduces
           from shares group by 1, 2, 3
         ) n join scan_rollups r using (subject_id, days, start)
       ) sized
     ) old
     where old.small and r.id = old.id
     returning r.*
   ), parts as materialized (
     select subject_id, days, start, account_id, scans, unique_scans, names, counts from shares
     union all
     select subject_id, days, start, account_id, scans, unique_scans, names, counts from merged
   ), folded as (${INSERT_SUMS})
   select (select max(id) from taken) as last,
          (select count(*) from taken) = ${MAX_INCREMENTS}
          or (select sum(cardinality(names)) from taken) >= ${MAX_NAMES} as more`,
);

/**
 * Adds the increments with an id greater than `after` to the counters of accounts and of weeks, removes counters that
 * become zero, and returns the greatest id that was folded, if any. Reports read increments too, so their results do
 * not depend on when this happens. Any number of processes may call this at once; one of them at a time does the work.
 *
 * With 0, all increments are folded. But as long as any transaction is open, such as a backup's, Postgres keeps the
 * index entries of everything folded since it began, and reads them again. An increment may be committed after one with
 * a greater id.
 */
export async function foldIncrements(pool: Pool, after = '0'): Promise<string | undefined> {
  for (let last: string | undefined; ; ) {
    const folded = await locked(pool, (tx) => first(tx, fold, [last ?? after]));
    last = folded?.last ?? last;
    if (!folded?.more) return last;
  }
}

/** Index: scan_rollups_of_subject. */
const listDivided = statement<{ days: number; start: string }>(
  'scans_list_divided_rollups',
  `select days, start::text as start from scan_rollups where subject_id = $1 group by days, start having count(*) > 1`,
);
/** Index: scan_rollups_of_subject. */
const unite = statement(
  'scans_unite_rollups',
  `with parts as materialized (
     delete from scan_rollups where subject_id = $1 and days = $2 and start = $3::date returning *
   ) ${INSERT_SUMS}`,
);

/**
 * Unites the rows of each week and day of an account (a UUID) whose scans were deleted: what a row too large to be
 * merged has of them is also in other rows, with the opposite sign. The increments must be folded.
 */
export async function removeZeros(pool: Pool, accountId: string): Promise<void> {
  for (const { days, start } of await run(pool, listDivided, [accountId])) {
    await locked(pool, (tx) => run(tx, unite, [accountId, days, start]));
  }
}

function locked<T>(pool: Pool, work: (tx: PoolClient) => Promise<T>): Promise<T> {
  return transaction(pool, async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [LOCKS.scanRollups]);
    await tx.query(SETTINGS);
    return await work(tx);
  });
}

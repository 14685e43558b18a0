import type { Pool } from 'pg';
import { first, statement, transaction } from '../../../common/postgres/sql.ts';
import { LOCKS } from '../../db/locks.ts';

/** Maximum increments folded per transaction: those of polls of about 5,000 codes. */
const MAX_INCREMENTS = 10_000;
/** Enough to sum that many increments, three times about 100,000 values, without temporary files. */
const SET_WORK_MEM = `set local work_mem = '64MB'`;
/**
 * Maximum names of a row with which every addition is merged. A larger row is merged only once half as many names have
 * been added since, so that a day with a million invented referrers is not rewritten every few seconds.
 */
const ALWAYS_MERGED = 1_000;

/**
 * Indexes: primary keys and scan_rollups_of_subject. A statement sees either an increment or the rows that it was
 * folded into.
 */
const fold = statement<{ taken: number }>(
  'scans_fold_increments',
  `with taken as (
     delete from scan_increments where id = any(array(select id from scan_increments order by id limit ${MAX_INCREMENTS}))
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
       select r.id,
              n.reduces or cardinality(r.names) <= greatest(
                ${ALWAYS_MERGED},
                2 * (n.names + sum(cardinality(r.names)) over newer - cardinality(r.names))
              ) as small
       from (
         select subject_id, days, start, sum(cardinality(names)) as names, coalesce(bool_or(counts[1] < 0), false) as reduces
         from shares group by 1, 2, 3
       ) n join scan_rollups r using (subject_id, days, start)
       window newer as (partition by r.subject_id, r.days, r.start order by r.id desc)
     ) old
     where old.small and r.id = old.id
     returning r.*
   ), parts as materialized (
     select subject_id, days, start, account_id, scans, unique_scans, names, counts from shares
     union all
     select subject_id, days, start, account_id, scans, unique_scans, names, counts from merged
   ), folded as (
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
     group by 1, 2, 3, 4
   )
   select count(*)::integer as taken from taken`,
);

/**
 * Adds the increments that triggers have inserted to the counters of accounts and of weeks, and removes counters that
 * become zero. Reports read increments too, so their results do not depend on when this happens. Any number of
 * processes may call this at once; one of them at a time does the work.
 */
export async function foldIncrements(pool: Pool): Promise<void> {
  let folded: number;
  do {
    folded = await transaction(pool, async (tx) => {
      await tx.query('select pg_advisory_xact_lock($1)', [LOCKS.scanRollups]);
      await tx.query(SET_WORK_MEM);
      return (await first(tx, fold))?.taken ?? 0;
    });
  } while (folded === MAX_INCREMENTS);
}

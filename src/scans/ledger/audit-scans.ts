import { run, statement } from '../../../common/postgres/sql.ts';
import type { Database } from '../../db/database.ts';
import { inSnapshot } from '../../db/snapshot.ts';
import { dayOf } from '../days.ts';
import { type Ledger, readLedger } from './ledger.ts';

/**
 * A disagreement: between the counters of a code's day and its rows, also by target, between a code's total and its
 * days, between the counters of a week (on its Monday) or an account and those of days, or between a day and the
 * ledger. A month that is archived in part is compared as a whole, on its first day.
 */
export interface Difference {
  /** UUID; null for differences of an account, the ledger or an archive. */
  readonly code_id: string | null;
  /** `YYYY-MM-DD`; null for differences of a code's total. */
  readonly day: string | null;
  /** The counter that differs. */
  readonly counter:
    | 'scans'
    | 'unique_scans'
    | 'hours'
    | 'values'
    | 'targets'
    | 'total'
    | 'week'
    | 'account'
    | 'ledger'
    | 'archive';
  readonly expected: number;
  readonly counted: number;
}

/** Result of an audit. */
export interface ScanAudit {
  readonly ledger: Ledger;
  /** Recorded scans of the window, without archived months. */
  readonly rows: number;
  /** Scans in the archives of the window's months. */
  readonly archived: number;
  /** The same scans according to the day counters. */
  readonly counted: number;
  /** The first 100; empty when everything agrees. */
  readonly differences: readonly Difference[];
}

const MAX_DIFFERENCES = 100;

/** Days of the window in months of which nothing is archived. */
const IN_WINDOW = `between $1 and $2 and date_trunc('month', day)::date not in (select month from archived)`;

/** The Monday of a day's week. */
const mondayOf = (day: string) => `(${day} - (${day} - date '2018-01-01') % 7)`;
/** Days of the weeks that the window touches. */
const IN_WEEKS = `between ${mondayOf('$1::date')} and ${mondayOf('$2::date')} + 6`;
/** The weeks and the day of an account that a code's day counts in. */
const SUBJECTS = `(
  values (code_id, 7, ${mondayOf('day')}), (account_id, 7, ${mondayOf('day')}), (account_id, 1, day)
) as subject (subject_id, days, start)`;

/** Scans the window's partitions completely: for operators on the command line, not for API callers. */
const compare = statement<
  { [Field in keyof Difference]: Difference[Field] | null } & Pick<ScanAudit, 'rows' | 'archived'> & {
      all_counted: number;
    }
>(
  'scans_audit',
  `with archived as materialized (
     select month, sum(scans) as scans from scan_archives
     where month between date_trunc('month', $1::date) and $2::date
     group by 1
   ), stored as (
     select code_id, day, count(*) as scans, count(distinct visitor) as unique_scans
     from (
       select code_id, (scanned_at at time zone 'UTC')::date as day, visitor from scans
       where scanned_at >= $1::date::timestamp at time zone 'UTC'
         and scanned_at < ($2::date + 1)::timestamp at time zone 'UTC'
     ) dated
     where day ${IN_WINDOW}
     group by 1, 2
   ), hours as (
     select code_id, day, sum(scans) as scans, sum(unique_scans) as unique_scans
     from (
       select code_id, (hour at time zone 'UTC')::date as day, scans, unique_scans from scan_hours
       where hour >= $1::date::timestamp at time zone 'UTC' and hour < ($2::date + 1)::timestamp at time zone 'UTC'
     ) dated
     where day ${IN_WINDOW}
     group by 1, 2
   ), days as (
     select code_id, day, scans, unique_scans from scan_days where day ${IN_WINDOW}
   ), rolled_up as (
     select subject_id, subject_id = account_id as of_account, days, start, left(name, 1) as initial, sum(count) as counted
     from (
       select subject_id, account_id, days, start, unnest(names) as name, unnest(counts) as count
       from scan_rollups where start ${IN_WEEKS}
       union all
       select subject_id, account_id, days, start, unnest(names), unnest(counts)
       from scan_increments cross join lateral ${SUBJECTS} where day ${IN_WEEKS}
     ) named
     group by 1, 2, 3, 4, 5
   ), summed_up as (
     select subject_id, subject_id = account_id as of_account, days, start, left(dimension::text, 1) as initial,
            sum(scans) as expected
     from scan_values cross join lateral ${SUBJECTS} where day ${IN_WEEKS}
     group by 1, 2, 3, 4, 5
   ), compared as (
     select code_id, day, 'scans' as counter, coalesce(stored.scans, 0) as expected, coalesce(days.scans, 0) as counted
     from stored full join days using (code_id, day)
     union all
     select code_id, day, 'unique_scans', coalesce(stored.unique_scans, 0), coalesce(days.unique_scans, 0)
     from stored full join days using (code_id, day)
     union all
     select code_id, day, 'hours', coalesce(days.scans + days.unique_scans, 0),
            coalesce(hours.scans + hours.unique_scans, 0)
     from days full join hours using (code_id, day)
     union all
     select code_id, day, 'values', coalesce(days.scans, 0), coalesce(shares.scans, 0)
     from (days cross join unnest(enum_range(null::scan_dimension)) as dimension)
     full join (
       select code_id, day, dimension, sum(scans) as scans from scan_values where day ${IN_WINDOW} group by 1, 2, 3
     ) shares using (code_id, day, dimension)
     union all
     select code_id, day, 'targets', coalesce(recorded.scans, 0), coalesce(shares.scans, 0)
     from (
       select code_id, day, version, rule, variant, count(*) as scans
       from (
         select code_id, (scanned_at at time zone 'UTC')::date as day, target_version as version, target_rule as rule,
                target_variant as variant
         from scans
         where scanned_at >= $1::date::timestamp at time zone 'UTC'
           and scanned_at < ($2::date + 1)::timestamp at time zone 'UTC' and target_version is not null
       ) dated
       where day ${IN_WINDOW}
       group by 1, 2, 3, 4, 5
     ) recorded full join (
       select code_id, day, version, rule, variant, scans from scan_targets where day ${IN_WINDOW}
     ) shares using (code_id, day, version, rule, variant)
     union all
     select code_id, null, 'total', coalesce(lives.scans, 0), coalesce(t.scans, 0)
     from (select code_id, sum(scans) as scans from scan_days group by 1) lives full join scan_totals t using (code_id)
     union all
     select case when of_account then null else subject_id end, start, case when of_account then 'account' else 'week' end,
            coalesce(expected, 0), coalesce(counted, 0)
     from summed_up full join rolled_up using (subject_id, of_account, days, start, initial)
     union all
     select null, day, 'account', coalesce(expected, 0), coalesce(counted, 0)
     from (
       select account_id, day, sum(scans + unique_scans) as expected from scan_days where day ${IN_WEEKS} group by 1, 2
     ) summed full join (
       select account_id, day, sum(scans + unique_scans) as counted
       from (
         select account_id, start as day, scans, unique_scans from scan_rollups where days = 1 and start ${IN_WEEKS}
         union all
         select account_id, day, scans, unique_scans from scan_increments where day ${IN_WEEKS}
       ) rolled group by 1, 2
     ) rolled using (account_id, day)
     union all
     select null, day, 'ledger', coalesce(rows.scans, 0), coalesce(entered.scans, 0)
     from (select day, sum(scans) as scans from stored group by 1) rows full join (
       select day, sum(recorded - deleted) as scans from scan_ledger where day ${IN_WINDOW} group by 1
     ) entered using (day)
     union all
     select null, month, 'archive', archived.scans + late.scans, lives.scans
     from archived cross join lateral (
       select count(*) as scans from scans
       where scanned_at >= month::timestamp at time zone 'UTC'
         and scanned_at < (month + interval '1 month') at time zone 'UTC'
     ) late cross join lateral (
       select coalesce(sum(scans), 0) as scans from scan_days
       where day >= month and day < (month + interval '1 month')::date
     ) lives
   )
   select (select coalesce(sum(scans), 0) from stored)::float8 as rows,
          (select coalesce(sum(scans), 0) from archived)::float8 as archived,
          (select coalesce(sum(scans), 0) from days)::float8 as all_counted,
          code_id, to_char(day, 'YYYY-MM-DD') as day, counter, expected::float8 as expected, counted::float8 as counted
   from (select) one left join (
     select * from compared where expected <> counted order by code_id, day, counter limit ${MAX_DIFFERENCES}
   ) differing on true`,
);

/**
 * Compares recorded scans with the counters of the days from `from` to `to` (ms since 1970, both included), these with
 * the counters of accounts and of weeks, and every code's total with its days. Ends with an error when `signal` aborts.
 */
export function auditScans(
  { pool }: Database,
  { from, to }: { from: number; to: number },
  signal?: AbortSignal,
): Promise<ScanAudit> {
  // Recorders keep running, so everything is read from one snapshot.
  return inSnapshot(pool, signal, async (tx) => {
    const rows = await run(tx, compare, [dayOf(from), dayOf(to)]);
    return {
      ledger: await readLedger(tx, { from, to }),
      rows: rows[0]?.rows ?? 0,
      archived: rows[0]?.archived ?? 0,
      counted: rows[0]?.all_counted ?? 0,
      differences: rows.flatMap(({ code_id, day, counter, expected, counted }) =>
        counter === null || expected === null || counted === null ? [] : [{ code_id, day, counter, expected, counted }],
      ),
    };
  });
}

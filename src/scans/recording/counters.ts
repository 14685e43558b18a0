import type { PoolClient } from 'pg';
import { run, statement } from '../../../common/postgres/sql.ts';
import { BinaryRows } from '../../db/binary-rows.ts';
import { columnArrays } from '../column-arrays.ts';
import {
  type CounterIncrements,
  type DayIncrement,
  type HourIncrement,
  REFERRERS_A_DAY,
  type ValueIncrement,
} from './increments.ts';

// Each of the four uses its table's primary key; the updated columns are in no index.
const INCREMENT_DAYS = statement(
  'increment_scan_days',
  `insert into scan_days as d (code_id, account_id, day, scans, unique_scans)
   select * from unnest($1::uuid[], $2::uuid[], $3::date[], $4::bigint[], $5::bigint[])
   on conflict (code_id, day) do update
   set scans = d.scans + excluded.scans, unique_scans = d.unique_scans + excluded.unique_scans`,
);
const INCREMENT_HOURS = statement(
  'increment_scan_hours',
  `insert into scan_hours as h (code_id, account_id, hour, scans, unique_scans)
   select * from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::bigint[], $5::bigint[])
   on conflict (code_id, hour) do update
   set scans = h.scans + excluded.scans, unique_scans = h.unique_scans + excluded.unique_scans`,
);
const INCREMENT_TOTALS = statement(
  'increment_scan_totals',
  `insert into scan_totals as t (code_id, account_id, scans)
   select * from unnest($1::uuid[], $2::uuid[], $3::bigint[])
   on conflict (code_id) do update set scans = t.scans + excluded.scans`,
);
const INCREMENT_VALUES = statement(
  'increment_scan_values',
  `insert into scan_values as v (code_id, account_id, day, dimension, value, scans)
   select * from unnest($1::uuid[], $2::uuid[], $3::date[], $4::scan_dimension[], $5::text[], $6::bigint[])
   on conflict (code_id, day, dimension, value) do update set scans = v.scans + excluded.scans`,
);

// Primary key: one lookup per referrer, and for one that is new to its day, a count of that day's referrers.
const EXCESS_REFERRERS = statement<{ index: number }>(
  'excess_referrers',
  `select ordinality::integer - 1 as index
   from unnest($1::uuid[], $2::date[], $3::text[]) with ordinality as seen (code_id, day, value, ordinality)
   where case
     when exists (
       select from scan_values v
       where v.code_id = seen.code_id and v.day = seen.day and v.dimension = 'referrer' and v.value = seen.value
     ) then false
     else ${REFERRERS_A_DAY} <= (
       select count(*) from scan_values v
       where v.code_id = seen.code_id and v.day = seen.day and v.dimension = 'referrer'
     )
   end`,
);

/** Values that stand for the absence of a host; the limit does not apply to them. */
const WITHOUT_HOST = new Set(['direct', 'unknown', 'other']);

/** Increments every counter, in the transaction that inserts the scans counted. */
export async function incrementCounters(tx: PoolClient, increments: CounterIncrements): Promise<void> {
  await insertDays(tx, increments.fresh.days);
  await run(
    tx,
    INCREMENT_DAYS,
    columnArrays(
      increments.known.days,
      ({ codeId }) => codeId,
      ({ accountId }) => accountId,
      ({ day }) => day,
      ({ scans }) => scans,
      ({ unique }) => unique,
    ),
  );
  await insertHours(tx, increments.fresh.hours);
  await run(
    tx,
    INCREMENT_HOURS,
    columnArrays(
      increments.known.hours,
      ({ codeId }) => codeId,
      ({ accountId }) => accountId,
      ({ hour }) => new Date(hour).toISOString(),
      ({ scans }) => scans,
      ({ unique }) => unique,
    ),
  );
  await insertValues(tx, increments.fresh.values);
  await incrementValues(tx, increments.known.values);
  await run(
    tx,
    INCREMENT_TOTALS,
    columnArrays(
      increments.totals,
      ({ codeId }) => codeId,
      ({ accountId }) => accountId,
      ({ scans }) => scans,
    ),
  );
}

function insertDays(tx: PoolClient, increments: readonly DayIncrement[]): Promise<void> {
  return BinaryRows.copyEach(
    tx,
    'scan_days (code_id, day, account_id, scans, unique_scans)',
    increments,
    (rows, increment) => {
      rows.row(5);
      rows.uuid(increment.codeId);
      rows.day(increment.day);
      rows.uuid(increment.accountId);
      rows.bigint(increment.scans);
      rows.bigint(increment.unique);
    },
  );
}

function insertHours(tx: PoolClient, increments: readonly HourIncrement[]): Promise<void> {
  return BinaryRows.copyEach(
    tx,
    'scan_hours (code_id, hour, account_id, scans, unique_scans)',
    increments,
    (rows, increment) => {
      rows.row(5);
      rows.uuid(increment.codeId);
      rows.time(increment.hour);
      rows.uuid(increment.accountId);
      rows.bigint(increment.scans);
      rows.bigint(increment.unique);
    },
  );
}

function insertValues(tx: PoolClient, increments: readonly ValueIncrement[]): Promise<void> {
  const table = 'scan_values (code_id, day, dimension, value, account_id, scans)';
  return BinaryRows.copyEach(tx, table, increments, (rows, increment) => {
    rows.row(6);
    rows.uuid(increment.codeId);
    rows.day(increment.day);
    rows.text(increment.dimension);
    rows.text(increment.value);
    rows.uuid(increment.accountId);
    rows.bigint(increment.scans);
  });
}

/**
 * Increments the breakdowns, folding referrers over the daily limit into `other`. The row of the code's day, which this
 * transaction has updated before, blocks other recorders of the same code and day until this transaction ends.
 */
async function incrementValues(tx: PoolClient, increments: readonly ValueIncrement[]): Promise<void> {
  if (increments.length === 0) return;
  const referrers = increments.filter(({ dimension, value }) => dimension === 'referrer' && !WITHOUT_HOST.has(value));
  const excess =
    referrers.length === 0
      ? []
      : await run(
          tx,
          EXCESS_REFERRERS,
          columnArrays(
            referrers,
            ({ codeId }) => codeId,
            ({ day }) => day,
            ({ value }) => value,
          ),
        );
  const rows =
    excess.length === 0 ? increments : foldExcess(increments, new Set(excess.map(({ index }) => referrers[index])));
  await run(
    tx,
    INCREMENT_VALUES,
    columnArrays(
      rows,
      ({ codeId }) => codeId,
      ({ accountId }) => accountId,
      ({ day }) => day,
      ({ dimension }) => dimension,
      ({ value }) => value,
      ({ scans }) => scans,
    ),
  );
}

/** Replaces the value of excess increments with `other` and merges increments of the same counter. */
function foldExcess(
  increments: readonly ValueIncrement[],
  excess: ReadonlySet<ValueIncrement | undefined>,
): ValueIncrement[] {
  const folded = new Map<string, ValueIncrement>();
  for (const increment of increments) {
    const value = excess.has(increment) ? 'other' : increment.value;
    const key = `${increment.codeId} ${increment.day} ${increment.dimension} ${value}`;
    const existing = folded.get(key);
    if (existing) existing.scans += increment.scans;
    else folded.set(key, { ...increment, value });
  }
  return [...folded.keys()].sort().map((key) => folded.get(key) as ValueIncrement);
}

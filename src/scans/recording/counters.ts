import type { PoolClient } from 'pg';
import { run, statement } from '../../../common/postgres/sql.ts';
import { BinaryRows } from '../../db/binary-rows.ts';
import { columns } from './columns.ts';
import { type DayMove, type HourMove, type Moves, REFERRERS_A_DAY, type ValueMove } from './tally.ts';

// Primary keys, all four; what changes is in no index.
const MOVE_DAYS = statement(
  'move_scan_days',
  `insert into scan_days as d (code_id, account_id, day, scans, unique_scans)
   select * from unnest($1::uuid[], $2::uuid[], $3::date[], $4::bigint[], $5::bigint[])
   on conflict (code_id, day) do update
   set scans = d.scans + excluded.scans, unique_scans = d.unique_scans + excluded.unique_scans`,
);
const MOVE_HOURS = statement(
  'move_scan_hours',
  `insert into scan_hours as h (code_id, account_id, hour, scans, unique_scans)
   select * from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::bigint[], $5::bigint[])
   on conflict (code_id, hour) do update
   set scans = h.scans + excluded.scans, unique_scans = h.unique_scans + excluded.unique_scans`,
);
const MOVE_TOTALS = statement(
  'move_scan_totals',
  `insert into scan_totals as t (code_id, account_id, scans)
   select * from unnest($1::uuid[], $2::uuid[], $3::bigint[])
   on conflict (code_id) do update set scans = t.scans + excluded.scans`,
);
const MOVE_VALUES = statement(
  'move_scan_values',
  `insert into scan_values as v (code_id, account_id, day, dimension, value, scans)
   select * from unnest($1::uuid[], $2::uuid[], $3::date[], $4::scan_dimension[], $5::text[], $6::bigint[])
   on conflict (code_id, day, dimension, value) do update set scans = v.scans + excluded.scans`,
);

// Primary key, for each referrer once, and for one that is new to its day over that day's referrers.
const EXCESS_REFERRERS = statement<{ place: number }>(
  'excess_referrers',
  `select place::integer - 1 as place
   from unnest($1::uuid[], $2::date[], $3::text[]) with ordinality as told (code_id, day, value, place)
   where case
     when exists (
       select from scan_values v
       where v.code_id = told.code_id and v.day = told.day and v.dimension = 'referrer' and v.value = told.value
     ) then false
     else ${REFERRERS_A_DAY} <= (
       select count(*) from scan_values v
       where v.code_id = told.code_id and v.day = told.day and v.dimension = 'referrer'
     )
   end`,
);

/** What stands for no host, and is never in excess. */
const ALWAYS_TOLD = new Set(['direct', 'unknown', 'other']);

/** Moves every counter, in the transaction that inserts what is counted. */
export async function move(tx: PoolClient, moves: Moves): Promise<void> {
  await insertDays(tx, moves.fresh.days);
  await run(
    tx,
    MOVE_DAYS,
    columns(
      moves.known.days,
      ({ codeId }) => codeId,
      ({ accountId }) => accountId,
      ({ day }) => day,
      ({ scans }) => scans,
      ({ unique }) => unique,
    ),
  );
  await insertHours(tx, moves.fresh.hours);
  await run(
    tx,
    MOVE_HOURS,
    columns(
      moves.known.hours,
      ({ codeId }) => codeId,
      ({ accountId }) => accountId,
      ({ hour }) => new Date(hour).toISOString(),
      ({ scans }) => scans,
      ({ unique }) => unique,
    ),
  );
  await insertValues(tx, moves.fresh.values);
  await moveValues(tx, moves.known.values);
  await run(
    tx,
    MOVE_TOTALS,
    columns(
      moves.totals,
      ({ codeId }) => codeId,
      ({ accountId }) => accountId,
      ({ scans }) => scans,
    ),
  );
}

function insertDays(tx: PoolClient, moves: readonly DayMove[]): Promise<void> {
  return BinaryRows.copyEach(tx, 'scan_days (code_id, day, account_id, scans, unique_scans)', moves, (rows, move) => {
    rows.row(5);
    rows.uuid(move.codeId);
    rows.day(move.day);
    rows.uuid(move.accountId);
    rows.bigint(move.scans);
    rows.bigint(move.unique);
  });
}

function insertHours(tx: PoolClient, moves: readonly HourMove[]): Promise<void> {
  return BinaryRows.copyEach(tx, 'scan_hours (code_id, hour, account_id, scans, unique_scans)', moves, (rows, move) => {
    rows.row(5);
    rows.uuid(move.codeId);
    rows.time(move.hour);
    rows.uuid(move.accountId);
    rows.bigint(move.scans);
    rows.bigint(move.unique);
  });
}

function insertValues(tx: PoolClient, moves: readonly ValueMove[]): Promise<void> {
  const table = 'scan_values (code_id, day, dimension, value, account_id, scans)';
  return BinaryRows.copyEach(tx, table, moves, (rows, move) => {
    rows.row(6);
    rows.uuid(move.codeId);
    rows.day(move.day);
    rows.text(move.dimension);
    rows.text(move.value);
    rows.uuid(move.accountId);
    rows.bigint(move.scans);
  });
}

/**
 * Moves the breakdowns. A code's day takes only so many referrers. The day's row, moved before, keeps other recorders
 * of the same code and day out until this transaction ends.
 */
async function moveValues(tx: PoolClient, moves: readonly ValueMove[]): Promise<void> {
  if (moves.length === 0) return;
  const referrers = moves.filter(({ dimension, value }) => dimension === 'referrer' && !ALWAYS_TOLD.has(value));
  const excess =
    referrers.length === 0
      ? []
      : await run(
          tx,
          EXCESS_REFERRERS,
          columns(
            referrers,
            ({ codeId }) => codeId,
            ({ day }) => day,
            ({ value }) => value,
          ),
        );
  const rows = excess.length === 0 ? moves : folded(moves, new Set(excess.map(({ place }) => referrers[place])));
  await run(
    tx,
    MOVE_VALUES,
    columns(
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

/** The moves with those in excess turned into their day's `other`. */
function folded(moves: readonly ValueMove[], excess: ReadonlySet<ValueMove | undefined>): ValueMove[] {
  const kept = new Map<string, ValueMove>();
  for (const move of moves) {
    const value = excess.has(move) ? 'other' : move.value;
    const key = `${move.codeId} ${move.day} ${move.dimension} ${value}`;
    const there = kept.get(key);
    if (there) there.scans += move.scans;
    else kept.set(key, { ...move, value });
  }
  return [...kept.keys()].sort().map((key) => kept.get(key) as ValueMove);
}

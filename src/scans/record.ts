import type { Pool, PoolClient } from 'pg';
import { run, statement, transaction } from '../db/sql.ts';
import { columns } from './columns.ts';
import type { DerivedScan } from './derive.ts';
import { REFERRERS_A_DAY, tally, type ValueMove } from './tally.ts';
import { RULES } from './user-agent.ts';

// Primary key: an id that is there stays as it is and is not returned.
const INSERT_SCANS = statement<{ id: string }>(
  'insert_scans',
  `insert into scans (id, scanned_at, account_id, code_id, kind, rules, country, device, operating_system, browser,
                      referrer, visitor)
   select id, scanned_at, account_id, code_id, kind, ${RULES}, country, device, operating_system, browser, referrer,
          visitor
   from unnest($1::uuid[], $2::timestamptz[], $3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::text[],
               $9::text[], $10::text[], $11::bigint[])
        as told (id, scanned_at, account_id, code_id, kind, country, device, operating_system, browser, referrer,
                 visitor)
   on conflict do nothing
   returning id`,
);

// Primary key.
const INSERT_VISITORS = statement<{ key: string }>(
  'insert_visitors',
  `insert into scan_visitors (day, code_id, visitor)
   select * from unnest($1::date[], $2::uuid[], $3::bigint[])
   on conflict do nothing
   returning visitor || ' ' || code_id || ' ' || to_char(day, 'YYYY-MM-DD') as key`,
);

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

/**
 * Records scans and moves every counter by those that were not there before, in one transaction: recording the same
 * scans again, from anywhere, changes nothing. Rows are written in one order everywhere, so that two recorders never
 * wait for each other in a circle. The partitions must exist. Gives how many were new.
 */
export function record(pool: Pool, scans: readonly DerivedScan[]): Promise<number> {
  return transaction(pool, async (tx) => {
    const fresh = await insertScans(tx, scans);
    if (fresh.length === 0) return 0;
    const firsts = await insertVisitors(tx, fresh);
    const moves = tally(fresh, (scan) => firsts.has(scan));
    await run(
      tx,
      MOVE_DAYS,
      columns(
        moves.days,
        ({ codeId }) => codeId,
        ({ accountId }) => accountId,
        ({ day }) => day,
        ({ scans }) => scans,
        ({ unique }) => unique,
      ),
    );
    await run(
      tx,
      MOVE_HOURS,
      columns(
        moves.hours,
        ({ codeId }) => codeId,
        ({ accountId }) => accountId,
        ({ hour }) => hour,
        ({ scans }) => scans,
        ({ unique }) => unique,
      ),
    );
    await moveValues(tx, moves.values);
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
    return fresh.length;
  });
}

async function insertScans(tx: PoolClient, scans: readonly DerivedScan[]): Promise<DerivedScan[]> {
  const byId = new Map(scans.map((scan) => [scan.id, scan]));
  const rows = [...byId.values()].sort((a, b) => compare(a.id, b.id));
  const inserted = await run(
    tx,
    INSERT_SCANS,
    columns(
      rows,
      ({ id }) => id,
      ({ scannedAt }) => new Date(scannedAt).toISOString(),
      ({ accountId }) => accountId,
      ({ codeId }) => codeId,
      ({ kind }) => kind,
      ({ country }) => country,
      ({ device }) => device,
      ({ operating_system }) => operating_system,
      ({ browser }) => browser,
      ({ referrer }) => referrer,
      ({ visitor }) => visitor,
    ),
  );
  if (inserted.length === rows.length) return rows;
  const ids = new Set(inserted.map(({ id }) => id));
  return rows.filter(({ id }) => ids.has(id));
}

/** Gives the scans that are their visitor's first on the code and day. */
async function insertVisitors(tx: PoolClient, scans: readonly DerivedScan[]): Promise<Set<DerivedScan>> {
  const firsts = new Set<DerivedScan>();
  const visits = new Map<string, DerivedScan>();
  for (const scan of scans) {
    if (!scan.recognisable) {
      firsts.add(scan);
      continue;
    }
    // What differs most comes first: these keys are sorted.
    const key = `${scan.visitor} ${scan.codeId} ${scan.day}`;
    const earlier = visits.get(key);
    if (!earlier || scan.scannedAt < earlier.scannedAt) visits.set(key, scan);
  }
  const keys = [...visits.keys()].sort();
  const rows = keys.map((key) => visits.get(key) as DerivedScan);
  if (rows.length === 0) return firsts;
  const inserted = await run(
    tx,
    INSERT_VISITORS,
    columns(
      rows,
      ({ day }) => day,
      ({ codeId }) => codeId,
      ({ visitor }) => visitor,
    ),
  );
  for (const { key } of inserted) firsts.add(visits.get(key) as DerivedScan);
  return firsts;
}

/**
 * Moves the breakdowns. A code's day takes only so many referrers. The day's row, moved before, keeps other recorders
 * of the same code and day out until this transaction ends.
 */
async function moveValues(tx: PoolClient, moves: readonly ValueMove[]): Promise<void> {
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

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

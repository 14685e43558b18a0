import type { Pool, PoolClient } from 'pg';
import { run, statement, transaction } from '../db/sql.ts';
import { columns } from './columns.ts';
import { countByDay } from './days.ts';
import type { DerivedScan } from './derive.ts';
import { type DayEntry, type Entry, enter } from './ledger.ts';
import { move } from './move.ts';
import { takeBack } from './take-back.ts';
import { tally } from './tally.ts';
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

/** Where recorded records came from, for the ledger. */
export type Source = Pick<Entry, 'partition' | 'position' | 'gateways'>;

/**
 * Records scans, moves every counter by those that were not there before and enters them in the ledger, in one
 * transaction: recording the same scans again, from anywhere, counts nothing. Rows are written in one order everywhere,
 * so that two recorders never wait for each other in a circle. The partitions must exist. Gives what became of each day.
 */
export function record(pool: Pool, scans: readonly DerivedScan[], source: Source): Promise<readonly DayEntry[]> {
  return transaction(pool, async (tx) => {
    const { kept, deleted } = await takeBack(tx, await insertScans(tx, scans));
    if (kept.length > 0) {
      const firsts = await insertVisitors(tx, kept);
      await move(
        tx,
        tally(kept, (scan) => firsts.has(scan)),
      );
    }
    const days = daysOf(scans, kept, deleted);
    await enter(tx, { ...source, days });
    return days;
  });
}

function daysOf(
  scans: readonly DerivedScan[],
  kept: readonly DerivedScan[],
  deleted: readonly DerivedScan[],
): DayEntry[] {
  const [counted, gone] = [byDay(kept), byDay(deleted)];
  return [...byDay(scans)].map(([day, records]) => {
    const late = gone.get(day) ?? 0;
    const recorded = (counted.get(day) ?? 0) + late;
    return { day, recorded, duplicates: records - recorded, deleted: late };
  });
}

function byDay(scans: readonly DerivedScan[]): Map<string, number> {
  return countByDay(scans.map(({ scannedAt }) => scannedAt));
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

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

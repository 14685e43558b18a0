import { DatabaseError, type Pool } from 'pg';
import { run, statement, transaction } from '../db/sql.ts';
import { columns } from './columns.ts';
import { countByDay } from './days.ts';
import type { DerivedScan } from './derive.ts';
import { copyScans, insertScans } from './insert-scans.ts';
import { insertVisitors } from './insert-visitors.ts';
import { type DayEntry, type Entry, enter } from './ledger.ts';
import { move } from './move.ts';
import { takeBack } from './take-back.ts';
import { tally } from './tally.ts';

// Primary key, for each code and day once.
const KNOWN_DAYS = statement<{ code_day: string }>(
  'known_scan_days',
  `select code_id || ' ' || to_char(day, 'YYYY-MM-DD') as code_day
   from unnest($1::uuid[], $2::date[]) as asked (code_id, day) join scan_days using (code_id, day)`,
);

/** SQLSTATE of a row that is there already. */
const UNIQUE_VIOLATION = '23505';

/** Where recorded records came from, for the ledger. */
export type Source = Pick<Entry, 'partition' | 'position' | 'gateways'>;

/**
 * Records scans, moves every counter by those that were not there before and enters them in the ledger, in one
 * transaction: recording the same scans again, from anywhere, counts nothing. Rows are written in one order everywhere,
 * so that two recorders hardly ever wait for each other in a circle; one of them then begins again. The partitions must
 * exist. Gives what became of each day.
 *
 * Nearly every poll is all new. So it is copied in as if it were, which costs half as much, and only where Postgres finds
 * a row that is there already does it begin again and look at each.
 */
export async function record(pool: Pool, scans: readonly DerivedScan[], source: Source): Promise<readonly DayEntry[]> {
  try {
    return await recordIn(pool, scans, source, true);
  } catch (error) {
    if (!(error instanceof DatabaseError && error.code === UNIQUE_VIOLATION)) throw error;
    return await recordIn(pool, scans, source, false);
  }
}

function recordIn(
  pool: Pool,
  scans: readonly DerivedScan[],
  source: Source,
  allNew: boolean,
): Promise<readonly DayEntry[]> {
  return transaction(pool, async (tx) => {
    const inserted = await (allNew ? copyScans(tx, scans) : insertScans(tx, scans));
    const { kept, deleted } = await takeBack(tx, inserted);
    if (kept.length > 0) {
      const codeDays = new Map(kept.map((scan) => [scan.codeDay, scan]));
      const known = await run(
        tx,
        KNOWN_DAYS,
        columns(
          [...codeDays.values()],
          ({ codeId }) => codeId,
          ({ day }) => day,
        ),
      );
      const knownDays = new Set(known.map(({ code_day }) => code_day));
      const isKnown = (codeDay: string) => !allNew || knownDays.has(codeDay);
      const firsts = await insertVisitors(tx, kept, isKnown);
      await move(
        tx,
        tally(kept, (scan) => firsts.has(scan), isKnown),
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

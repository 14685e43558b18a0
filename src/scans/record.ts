import { DatabaseError, type Pool, type PoolClient } from 'pg';
import { run, statement, transaction } from '../db/sql.ts';
import { columns } from './columns.ts';
import { countByDay } from './days.ts';
import type { DerivedScan } from './derive.ts';
import { copyScans, insertScans } from './insert-scans.ts';
import { insertVisitors } from './insert-visitors.ts';
import { type DayEntry, type Entry, enter } from './ledger.ts';
import { move } from './move.ts';
import type { ToldScan } from './read-scan.ts';
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
export async function record(
  pool: Pool,
  told: readonly ToldScan[],
  derived: (told: ToldScan) => DerivedScan,
  source: Source,
): Promise<readonly DayEntry[]> {
  const ordered = inOrder(told);
  const recordIn = (allNew: boolean) =>
    transaction(pool, async (tx) => {
      const inserted = await (allNew ? copyScans(tx, ordered, derived) : insertScans(tx, ordered.map(derived)));
      const { kept, deleted } = await takeBack(tx, inserted);
      if (kept.length > 0) await count(tx, kept, allNew);
      const days = daysOf(told, kept, deleted);
      await enter(tx, { ...source, days });
      return days;
    });
  try {
    return await recordIn(true);
  } catch (error) {
    if (!(error instanceof DatabaseError && error.code === UNIQUE_VIOLATION)) throw error;
    return await recordIn(false);
  }
}

/** Each once, in the order in which everybody writes: nobody then waits for somebody in a circle. */
function inOrder(told: readonly ToldScan[]): ToldScan[] {
  const ordered = [...told].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
  return ordered.filter(({ id }, index) => id !== ordered[index - 1]?.id);
}

async function count(tx: PoolClient, scans: readonly DerivedScan[], allNew: boolean): Promise<void> {
  const codeDays = new Map(scans.map((scan) => [scan.codeDay, scan]));
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
  const isFirst = await insertVisitors(tx, scans, isKnown);
  await move(tx, tally(scans, isFirst, isKnown));
}

function daysOf(told: readonly ToldScan[], kept: readonly DerivedScan[], deleted: readonly DerivedScan[]): DayEntry[] {
  const [counted, gone] = [byDay(kept), byDay(deleted)];
  return [...byDay(told)].map(([day, records]) => {
    const late = gone.get(day) ?? 0;
    const recorded = (counted.get(day) ?? 0) + late;
    return { day, recorded, duplicates: records - recorded, deleted: late };
  });
}

function byDay(scans: readonly { scannedAt: number }[]): Map<string, number> {
  return countByDay(scans.map(({ scannedAt }) => scannedAt));
}

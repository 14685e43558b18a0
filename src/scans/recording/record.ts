import { DatabaseError, type Pool, type PoolClient } from 'pg';
import type { LogRecord } from '../../../common/log/log.ts';
import { run, statement, transaction } from '../../../common/postgres/sql.ts';
import { countByDay } from '../days.ts';
import { type DayEntry, type Entry, enter, positionOf } from '../ledger/ledger.ts';
import { columns } from './columns.ts';
import { move } from './counters.ts';
import type { DerivedScan } from './derive.ts';
import { copyScans, insertScans } from './insert-scans.ts';
import { insertVisitors } from './insert-visitors.ts';
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

/** What a poll brought, all of one partition. */
export interface Poll {
  readonly told: readonly ToldScan[];
  /** What could not be read, and went to the dead letters. */
  readonly dead: readonly Pick<LogRecord, 'offset' | 'timestamp'>[];
  readonly partition: number;
  /** Offset of the record after them. */
  readonly next: bigint;
  readonly gateways: Entry['gateways'];
}

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
  poll: Poll,
  derived: (told: ToldScan) => DerivedScan,
): Promise<readonly DayEntry[]> {
  const { told, partition, gateways } = poll;
  const ordered = inOrder(told);
  const recordIn = (allNew: boolean) =>
    transaction(pool, async (tx) => {
      const position = await positionOf(tx, partition);
      const inserted = await (allNew ? copyScans(tx, ordered, derived) : insertScans(tx, ordered.map(derived)));
      const { kept, deleted } = await takeBack(tx, inserted);
      if (kept.length > 0) await count(tx, kept, allNew);
      const days = daysOf(poll, kept, deleted, position);
      await enter(tx, { partition, ...days, gateways });
      return days.days;
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

/**
 * What became of each day's records, and where the partition stands now. A log hands records out again whose recorder
 * was stopped between its transaction and the log's hearing of it: the ledger has those before `position` already.
 */
function daysOf(
  { told, dead, next }: Pick<Poll, 'told' | 'dead' | 'next'>,
  kept: readonly DerivedScan[],
  deleted: readonly DerivedScan[],
  position: bigint,
): Pick<Entry, 'days' | 'position'> {
  const [fresh, freshDead] = [since(position, told), since(position, dead)];
  const again = new Set(told.slice(0, told.length - fresh.length).map(({ id }) => id));
  // Of records that were handled before, nothing can be new: the position is another log's, or another topic's.
  if (again.size > 0 && kept.some(({ id }) => again.has(id))) return daysOf({ told, dead, next }, kept, deleted, 0n);
  const records = byDay(fresh);
  const [counted, gone] = [byDay(kept), byDay(deleted.filter(({ id }) => !again.has(id)))];
  const letters = countByDay(freshDead.map(({ timestamp }) => timestamp));
  const days = [...new Set([...records.keys(), ...letters.keys()])].map((day) => {
    const late = gone.get(day) ?? 0;
    const recorded = (counted.get(day) ?? 0) + late;
    const duplicates = (records.get(day) ?? 0) - recorded;
    return { day, recorded, duplicates, deadLettered: letters.get(day) ?? 0, deleted: late };
  });
  return { days, position: next > position ? next : position };
}

/** Records from an offset on; they come in the order of their offsets. */
function since<Of extends { readonly offset: bigint }>(position: bigint, records: readonly Of[]): readonly Of[] {
  const first = records.findIndex(({ offset }) => offset >= position);
  return first < 0 ? [] : records.slice(first);
}

function byDay(scans: readonly { scannedAt: number }[]): Map<string, number> {
  return countByDay(scans.map(({ scannedAt }) => scannedAt));
}

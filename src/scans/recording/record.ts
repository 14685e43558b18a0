import { DatabaseError, type Pool, type PoolClient } from 'pg';
import type { LogRecord } from '../../../common/log/log.ts';
import { run, statement, transactionWithin } from '../../../common/postgres/sql.ts';
import { columnArrays } from '../column-arrays.ts';
import { countByDay } from '../days.ts';
import { type DayEntry, type LedgerEntry, lockPosition, writeEntry } from '../ledger/ledger.ts';
import { incrementCounters } from './counters.ts';
import type { DecodedScan } from './decode-scan.ts';
import type { DerivedScan } from './derive.ts';
import { discardInserted } from './discard-inserted.ts';
import { tally } from './increments.ts';
import { copyScans, insertScans } from './insert-scans.ts';
import { insertVisitors } from './insert-visitors.ts';

/** Index: primary key, one lookup per code and day. */
const findKnownDays = statement<{ code_day: string }>(
  'scans_find_known_days',
  `select code_id || ' ' || to_char(day, 'YYYY-MM-DD') as code_day
   from unnest($1::uuid[], $2::date[]) as requested (code_id, day) join scan_days using (code_id, day)`,
);

/**
 * How long the transaction of a poll may take, in ms: 60 times what 10,000 scans take. A Postgres whose machine
 * vanished in the middle of one ends no connection, and the system waits for it for a quarter of an hour. Meanwhile the
 * recorder stays a member of its group, so no other recorder would take over its partitions.
 */
const RECORDING_MS = 20_000;

/** SQLSTATE of an insert whose key exists. */
const UNIQUE_VIOLATION = '23505';

/** The records of a partition from `position` on, up to those of a poll, were not recorded; undefined: none were. */
export class RecordsMissing extends Error {
  readonly position: bigint | undefined;

  constructor(position: bigint | undefined) {
    super(`records from ${position ?? 0n} on were not recorded`);
    this.position = position;
  }
}

/** The decoded records of one poll of one partition. */
export interface Poll {
  readonly scans: readonly DecodedScan[];
  /** Records that could not be decoded and were published as dead letters. */
  readonly deadLetters: readonly Pick<LogRecord, 'offset' | 'timestamp'>[];
  /** When the poll was decoded, by Postgres's clock, in ms since 1970. */
  readonly now: number;
  readonly partition: number;
  /** The identity of the topic: see `Log.identity`. */
  readonly topicId: string;
  /** Offset from which the records were read: the log has none between it and the first one. */
  readonly from: bigint;
  /** Offset after the last record. */
  readonly next: bigint;
  readonly gateways: LedgerEntry['gateways'];
}

/**
 * Inserts scans, increments every counter by the ones that are new, and enters them in the ledger, in one transaction:
 * recording the same scans again, from any recorder, counts nothing. Every recorder writes rows in the same order, so
 * deadlocks are rare; the aborted recorder retries. The partitions must exist. Returns the ledger entry of each day.
 * Rejects with `RecordsMissing` if Postgres lacks earlier records of the partition.
 *
 * Nearly every poll contains only new scans. It is therefore first copied as if all were new, which costs half as much
 * as `insert … on conflict`. Only when Postgres finds an existing row is the transaction repeated with each row
 * checked.
 */
export async function record(
  pool: Pool,
  poll: Poll,
  derive: (scan: DecodedScan) => DerivedScan,
): Promise<readonly DayEntry[]> {
  const { scans, now, partition, topicId, from, gateways } = poll;
  const ordered = uniqueById(scans);
  const recordAs = (allNew: boolean) =>
    transactionWithin(pool, RECORDING_MS, async (tx) => {
      const position = await lockPosition(tx, partition, topicId);
      if ((position ?? 0n) < from) throw new RecordsMissing(position);
      const inserted = await (allNew ? copyScans(tx, ordered, derive) : insertScans(tx, ordered.map(derive)));
      const { kept, deleted } = await discardInserted(tx, inserted, now);
      if (kept.length > 0) await count(tx, kept, allNew);
      const days = ledgerDays(poll, kept, deleted, position ?? 0n);
      await writeEntry(tx, { partition, topicId, ...days, gateways });
      return days.days;
    });
  try {
    return await recordAs(true);
  } catch (error) {
    if (!(error instanceof DatabaseError && error.code === UNIQUE_VIOLATION)) throw error;
    return await recordAs(false);
  }
}

/** Removes duplicates and sorts by id, the order in which every recorder writes, so that they do not deadlock. */
function uniqueById(scans: readonly DecodedScan[]): DecodedScan[] {
  const ordered = [...scans].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
  return ordered.filter(({ id }, index) => id !== ordered[index - 1]?.id);
}

async function count(tx: PoolClient, scans: readonly DerivedScan[], allNew: boolean): Promise<void> {
  const codeDays = new Map(scans.map((scan) => [scan.codeDay, scan]));
  const known = await run(
    tx,
    findKnownDays,
    columnArrays(
      [...codeDays.values()],
      ({ codeId }) => codeId,
      ({ day }) => day,
    ),
  );
  const knownDays = new Set(known.map(({ code_day }) => code_day));
  const isKnown = (codeDay: string) => !allNew || knownDays.has(codeDay);
  const isFirst = await insertVisitors(tx, scans, isKnown);
  await incrementCounters(tx, tally(scans, isFirst, isKnown));
}

/**
 * Counts each day's records by outcome and advances the position. The log delivers records again when a recorder was
 * stopped after its transaction committed and before it acknowledged them; the ledger already has those before
 * `position`.
 */
function ledgerDays(
  { scans, deadLetters, next }: Pick<Poll, 'scans' | 'deadLetters' | 'next'>,
  kept: readonly DerivedScan[],
  deleted: readonly DerivedScan[],
  position: bigint,
): Pick<LedgerEntry, 'days' | 'position'> {
  const [newScans, newDeadLetters] = [fromOffset(position, scans), fromOffset(position, deadLetters)];
  const redelivered = new Set(scans.slice(0, scans.length - newScans.length).map(({ id }) => id));
  // A redelivered record cannot hold a new scan: if one does, the position belongs to another log or topic.
  if (redelivered.size > 0 && kept.some(({ id }) => redelivered.has(id))) {
    return ledgerDays({ scans, deadLetters, next }, kept, deleted, 0n);
  }
  const records = byDay(newScans);
  const [keptByDay, deletedByDay] = [byDay(kept), byDay(deleted.filter(({ id }) => !redelivered.has(id)))];
  const deadLettersByDay = countByDay(newDeadLetters.map(({ timestamp }) => timestamp));
  const days = [...new Set([...records.keys(), ...deadLettersByDay.keys()])].map((day) => {
    const deletedOnArrival = deletedByDay.get(day) ?? 0;
    const recorded = (keptByDay.get(day) ?? 0) + deletedOnArrival;
    const duplicates = (records.get(day) ?? 0) - recorded;
    return { day, recorded, duplicates, deadLettered: deadLettersByDay.get(day) ?? 0, deleted: deletedOnArrival };
  });
  return { days, position: next > position ? next : position };
}

/** The records from an offset on; `records` are in the order of their offsets. */
function fromOffset<Of extends { readonly offset: bigint }>(position: bigint, records: readonly Of[]): readonly Of[] {
  const first = records.findIndex(({ offset }) => offset >= position);
  return first < 0 ? [] : records.slice(first);
}

function byDay(scans: readonly { scannedAt: number }[]): Map<string, number> {
  return countByDay(scans.map(({ scannedAt }) => scannedAt));
}

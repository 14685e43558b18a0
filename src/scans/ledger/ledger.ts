import type { PoolClient } from 'pg';
import type { GatewayFigures } from '../../../common/contract/gateway-figures.ts';
import type { Log } from '../../../common/log/log.ts';
import { SCANS } from '../../../common/log/topics.ts';
import { first, type Queryable, run, statement } from '../../../common/postgres/sql.ts';
import { columnArrays } from '../column-arrays.ts';
import { dayOf } from '../days.ts';

/** The outcome of some records of one partition. */
export interface LedgerEntry {
  readonly partition: number;
  /** The identity of the position's topic: see `Log.identity`. */
  readonly topicId: string;
  /** The partition's position: the offset after its last entered record. */
  readonly position: bigint;
  /** One entry per day. */
  readonly days: readonly DayEntry[];
  readonly gateways: readonly GatewayFigures[];
}

export interface DayEntry {
  /** `YYYY-MM-DD`. */
  readonly day: string;
  readonly recorded: number;
  readonly duplicates: number;
  readonly deadLettered: number;
  readonly deleted: number;
}

/** The ledger of a window: how many scans reached each stage. */
export interface Ledger {
  /** Answered by gateways, as far as they have reported it through the log. */
  readonly answered: number;
  /** Answered scans that were written to a spool on disk or in memory. */
  readonly spooled: number;
  /** Records sent to the log, an estimate: a gateway that restarts counts the last ones again. */
  readonly published: number;
  /** Inserted and counted. */
  readonly recorded: number;
  /** Records of scans that were already stored; a record that the log delivers again does not count. */
  readonly duplicates: number;
  /** Records that could not be decoded, by the day on which they arrived. */
  readonly dead_lettered: number;
  /** Recorded scans that were deleted on request. */
  readonly deleted: number;
}

interface Position {
  readonly position: string;
  readonly topic_id: string | null;
}

/** Index: primary key. */
const lock = statement<Position>(
  'scans_lock_position',
  'select position, topic_id from scan_positions where partition = $1 for update',
);
/** Index: primary key; the updated column is in no index. */
const insertAndLock = statement<Position>(
  'scans_insert_position',
  `insert into scan_positions as p (partition, position) values ($1, 0)
   on conflict (partition) do update set position = p.position
   returning position, topic_id`,
);

/** Indexes: primary keys, all three; the updated columns are in no index. */
const enterDays = statement(
  'scans_enter_ledger',
  `with advanced as (
     update scan_positions set position = $2, topic_id = $8 where partition = $1
   )
   insert into scan_ledger as l (partition, day, recorded, duplicates, dead_lettered, deleted)
   select $1, * from unnest($3::date[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
   on conflict (day, partition) do update
   set recorded = l.recorded + excluded.recorded, duplicates = l.duplicates + excluded.duplicates,
       dead_lettered = l.dead_lettered + excluded.dead_lettered, deleted = l.deleted + excluded.deleted`,
);
const enterGateways = statement(
  'scans_enter_gateways',
  `insert into scan_gateways as g (gateway, day, answered, lost, published)
   select gateway, day, max(answered), max(lost), max(published)
   from unnest($1::text[], $2::date[], $3::bigint[], $4::bigint[], $5::bigint[])
        as reported (gateway, day, answered, lost, published)
   group by gateway, day
   order by day, gateway
   on conflict (day, gateway) do update
   set answered = greatest(g.answered, excluded.answered), lost = greatest(g.lost, excluded.lost),
       published = greatest(g.published, excluded.published)
   where (excluded.answered, excluded.lost, excluded.published) is distinct from (g.answered, g.lost, g.published)`,
);

/**
 * Reads and locks the position of a partition: 0 if only records of a former topic were entered, and undefined if none
 * ever were. Must be the first statement of the entry's transaction: another recorder with records of the same
 * partition waits here until it ends.
 */
export async function lockPosition(tx: PoolClient, partition: number, topicId: string): Promise<bigint | undefined> {
  const row = (await first(tx, lock, [partition])) ?? (await first(tx, insertAndLock, [partition]));
  if (!row || row.position === '0') return undefined;
  return positionIn(topicId, row);
}

/** The position of a partition of the topic; the row of an earlier version does not say to which one it belongs. */
function positionIn(topicId: string, { position, topic_id }: Position): bigint {
  return (topic_id ?? topicId) === topicId ? BigInt(position) : 0n;
}

/**
 * Adds an entry, whose position is locked, to the ledger. Must be last in its transaction: all recorders update the
 * rows of gateways.
 */
export async function writeEntry(on: Queryable, entry: LedgerEntry): Promise<void> {
  const { partition, topicId, position, days, gateways } = entry;
  await run(on, enterDays, [
    partition,
    position,
    ...columnArrays(
      [...days].sort((a, b) => (a.day < b.day ? -1 : 1)),
      ({ day }) => day,
      ({ recorded }) => recorded,
      ({ duplicates }) => duplicates,
      ({ deadLettered }) => deadLettered,
      ({ deleted }) => deleted,
    ),
    topicId,
  ]);
  if (gateways.length === 0) return;
  await run(
    on,
    enterGateways,
    columnArrays(
      gateways,
      ({ gateway }) => gateway,
      ({ day }) => day,
      ({ answered }) => answered,
      ({ lost }) => lost,
      ({ published }) => published,
    ),
  );
}

/** Indexes: primary keys, one range each. */
const read = statement<Ledger>(
  'scans_read_ledger',
  `select coalesce(sum(answered), 0)::float8 as answered, coalesce(sum(answered - lost), 0)::float8 as spooled,
          coalesce(sum(published), 0)::float8 as published, l.*
   from scan_gateways right join (
     select coalesce(sum(recorded), 0)::float8 as recorded, coalesce(sum(duplicates), 0)::float8 as duplicates,
            coalesce(sum(dead_lettered), 0)::float8 as dead_lettered, coalesce(sum(deleted), 0)::float8 as deleted
     from scan_ledger where day between $1 and $2
   ) l on day between $1 and $2
   group by recorded, duplicates, dead_lettered, deleted`,
);

/** The ledger of the days from `from` to `to` (ms since 1970), both included. */
export async function readLedger(on: Queryable, { from, to }: { from: number; to: number }): Promise<Ledger> {
  const [ledger] = await run(on, read, [dayOf(from), dayOf(to)]);
  if (!ledger) throw new Error('the aggregate query returned no row');
  return ledger;
}

/** The whole table: one row per partition. */
const listPositions = statement<Position & { readonly partition: number }>(
  'scans_list_positions',
  'select partition, position, topic_id from scan_positions',
);

/** How many records of the topic of scans no recorder has processed. */
export async function waitingRecords(on: Queryable, log: Pick<Log, 'ends' | 'identity'>): Promise<number> {
  const [ends, topicId] = await Promise.all([log.ends(SCANS.name), log.identity(SCANS.name)]);
  const rows = await run(on, listPositions);
  const positions = new Map(rows.map((row) => [row.partition, positionIn(topicId, row)]));
  let waiting = 0n;
  for (const [partition, end] of ends) {
    const pending = end - (positions.get(partition) ?? 0n);
    if (pending > 0n) waiting += pending;
  }
  return Number(waiting);
}

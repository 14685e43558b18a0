import type { PoolClient } from 'pg';
import type { GatewayFigures } from '../../../common/contract/gateway-figures.ts';
import { first, type Queryable, run, statement } from '../../../common/postgres/sql.ts';
import { dayOf } from '../days.ts';
import { columns } from '../recording/columns.ts';

/** What became of some records of the topic, all of one partition. */
export interface Entry {
  readonly partition: number;
  /** Where the partition stands now: the offset after the last record that is entered. */
  readonly position: bigint;
  /** By day, `YYYY-MM-DD`; each once. */
  readonly days: readonly DayEntry[];
  readonly gateways: readonly GatewayFigures[];
}

export interface DayEntry {
  readonly day: string;
  readonly recorded?: number;
  readonly duplicates?: number;
  readonly deadLettered?: number;
  readonly deleted?: number;
}

/** The ledger of a window: how many scans got how far. */
export interface Ledger {
  /** By gateways, as far as the log has heard of them. */
  readonly answered: number;
  /** The answered ones that disk or memory took. */
  readonly spooled: number;
  /** Records handed to the log; more than were answered where a gateway could not know whether the log had them. */
  readonly published: number;
  /** Inserted and counted. */
  readonly recorded: number;
  /** Records of scans that were there already; a record that the log hands out again is none. */
  readonly duplicates: number;
  /** Records that could not be read, by the day on which they came. */
  readonly dead_lettered: number;
  /** Recorded ones that were deleted on request. */
  readonly deleted: number;
}

// Primary key; what changes is in no index.
const POSITION = statement<{ position: string }>(
  'scan_position',
  `insert into scan_positions as p values ($1, 0)
   on conflict (partition) do update set position = p.position
   returning position`,
);

// Primary keys, all three; what changes is in no index.
const ENTER_DAYS = statement(
  'enter_scan_ledger',
  `with moved as (
     insert into scan_positions values ($1, $2)
     on conflict (partition) do update set position = excluded.position
   )
   insert into scan_ledger as l (partition, day, recorded, duplicates, dead_lettered, deleted)
   select $1, * from unnest($3::date[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
   on conflict (day, partition) do update
   set recorded = l.recorded + excluded.recorded, duplicates = l.duplicates + excluded.duplicates,
       dead_lettered = l.dead_lettered + excluded.dead_lettered, deleted = l.deleted + excluded.deleted`,
);
const ENTER_GATEWAYS = statement(
  'enter_scan_gateways',
  `insert into scan_gateways as g (gateway, day, answered, lost, published)
   select gateway, day, max(answered), max(lost), max(published)
   from unnest($1::text[], $2::date[], $3::bigint[], $4::bigint[], $5::bigint[])
        as told (gateway, day, answered, lost, published)
   group by gateway, day
   order by day, gateway
   on conflict (day, gateway) do update
   set answered = greatest(g.answered, excluded.answered), lost = greatest(g.lost, excluded.lost),
       published = greatest(g.published, excluded.published)
   where (excluded.answered, excluded.lost, excluded.published) is distinct from (g.answered, g.lost, g.published)`,
);

/**
 * Where a partition stands. First in the transaction of its entry: until that ends, whoever else has the partition's
 * records in hand waits here.
 */
export async function positionOf(tx: PoolClient, partition: number): Promise<bigint> {
  const row = await first(tx, POSITION, [partition]);
  return BigInt(row?.position ?? 0);
}

/** Writes an entry into the ledger. Last in its transaction: gateways' rows are shared by all recorders. */
export async function enter(on: Queryable, { partition, position, days, gateways }: Entry): Promise<void> {
  await run(on, ENTER_DAYS, [
    partition,
    position,
    ...columns(
      [...days].sort((a, b) => (a.day < b.day ? -1 : 1)),
      ({ day }) => day,
      ({ recorded = 0 }) => recorded,
      ({ duplicates = 0 }) => duplicates,
      ({ deadLettered = 0 }) => deadLettered,
      ({ deleted = 0 }) => deleted,
    ),
  ]);
  if (gateways.length === 0) return;
  await run(
    on,
    ENTER_GATEWAYS,
    columns(
      gateways,
      ({ gateway }) => gateway,
      ({ day }) => day,
      ({ answered }) => answered,
      ({ lost }) => lost,
      ({ published }) => published,
    ),
  );
}

// Primary keys, a range each.
const READ = statement<Ledger>(
  'read_scan_ledger',
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
  const [ledger] = await run(on, READ, [dayOf(from), dayOf(to)]);
  if (!ledger) throw new Error('an aggregate has no row');
  return ledger;
}

// The whole table: a row a partition.
const POSITIONS = statement<{ partition: number; position: string }>(
  'read_scan_positions',
  'select partition, position from scan_positions',
);

/** How many records of the topic, which ends at `ends`, no recorder has come to. */
export async function waitingRecords(on: Queryable, ends: ReadonlyMap<number, bigint>): Promise<number> {
  const rows = await run(on, POSITIONS);
  const positions = new Map(rows.map(({ partition, position }) => [partition, BigInt(position)]));
  let waiting = 0n;
  for (const [partition, end] of ends) {
    const ahead = end - (positions.get(partition) ?? 0n);
    if (ahead > 0n) waiting += ahead;
  }
  return Number(waiting);
}

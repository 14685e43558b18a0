import type { Client } from 'pg';
import { BY_INDEX, run, statement } from '../postgres/sql.ts';
import { upToBytes } from '../postgres/up-to-bytes.ts';
import { type ConsumeOptions, type FollowOptions, type LogRecord, ReadAgain, type Subscription } from './log.ts';
import { joinedPayload, joinGroup, LOG_CHANNEL, type Membership, type RunQuery } from './postgres-group.ts';
import { MAX_RECORDS, PARTITIONS_AT_ONCE, RETRY_MS, readUntilStopped } from './subscriptions.ts';

/** How often a reader polls without a notification, in ms, plus up to a fifth: the delay if a notification is lost. */
const POLL_MS = 10_000;

/** The state of a reader over one connection. */
interface Progress {
  /** The positions of the partitions that this reader may read; the first partition is read first. */
  readonly positions: Map<number, bigint>;
  /**
   * Updates `positions`, given the ends of the partitions and those whose records are being handled; returns after how
   * many ms at most it must be called again, if that is soon.
   */
  assign(
    ends: ReadonlyMap<number, bigint>,
    inFlight: ReadonlySet<number>,
  ): Promise<number | undefined> | number | undefined;
  /** Records that everything before `next` was handled. */
  commit?(partition: number, next: bigint): Promise<unknown>;
}

interface Reading {
  readonly topic: string;
  readonly maxRecords?: number;
  readonly partitionsAtOnce?: number;
  handle(records: readonly LogRecord[], from: bigint): Promise<void> | void;
  onGap?(partition: number, end: bigint): Promise<void> | void;
  onError?(error: unknown): void;
  /** Called for each connection. */
  start(query: RunQuery): Promise<Progress> | Progress;
  /** Called when a member has joined a group of the topic. */
  onJoin?(): void;
}

const endsOf = statement<{ partition: number; next: string }>(
  'log_reader_ends',
  'select partition, next from log_partitions where topic = $1',
);

/** Maximum size of the values that are read of a partition at once, except for the last record. */
const PARTITION_BYTES = 4 * 1024 * 1024;

const COLUMNS = 'partition, "offset", key, headers, value, at';

/** Index: log_records_pkey, always (`BY_INDEX`), once for each partition. */
const recordsFrom = statement<{
  partition: number;
  offset: string;
  key: string;
  headers: unknown;
  value: Buffer | null;
  at: Date;
}>(
  'log_records_from',
  `select ${COLUMNS}
   from unnest($2::integer[], $3::bigint[]) as position (of_partition, start) cross join lateral (
     ${upToBytes(
       `select ${COLUMNS} from log_records
        where topic = $1 and partition = of_partition and "offset" >= start order by "offset" limit $4`,
       COLUMNS,
       '"offset"',
       PARTITION_BYTES,
     )}
   ) as records
   order by partition, "offset"`,
);

const commitOffset = statement(
  'log_commit',
  `insert into log_groups ("group", topic, partition, "offset") values ($1, $2, $3, $4)
   on conflict ("group", topic, partition) do update set "offset" = excluded."offset"`,
);

/**
 * See `Log.identity`. No id is needed: after a recreation, positions are either beyond the ends, which readers detect,
 * or were restored together with the table of partitions. Those of gateways were not, so `src/restored.ts` raises the
 * ends beyond them.
 */
export function identityOf(topic: string): string {
  return topic;
}

/** Joins a group: see `Log.consume`. It commits over the connection that holds its partitions' locks, or not at all. */
export function consumeTopic(connect: () => Promise<Client>, options: ConsumeOptions): Subscription {
  const { group, topic } = options;
  let membership: Membership | undefined;
  return subscribe(connect, {
    ...options,
    handle: (records, from) => options.handle(records, from, identityOf(topic)),
    onJoin: () => membership?.changed(),
    async start(query) {
      const positions = new Map<number, bigint>();
      const joined = await joinGroup(query, group, topic);
      membership = joined;
      return {
        positions,
        assign: (ends, inFlight) => joined.rebalance(positions, { partitions: ends.size, inFlight }),
        commit: (partition, next) => query(commitOffset, [group, topic, partition, next]),
      };
    },
  });
}

/** A reader without a group: see `Log.follow`. */
export function followTopic(connect: () => Promise<Client>, options: FollowOptions): Subscription {
  const positions = new Map(options.from);
  return subscribe(connect, {
    ...options,
    start: () => ({
      positions,
      assign(ends) {
        for (const [partition, end] of ends) {
          const position = positions.get(partition);
          // A position beyond the end means that the topic was recreated or restored from a backup.
          if (position === undefined || position > end) positions.set(partition, 0n);
        }
        return undefined;
      },
    }),
  });
}

/** Reads until it is stopped, over its own connection, which is reopened whenever it breaks. */
function subscribe(connect: () => Promise<Client>, reading: Reading): Subscription {
  return readUntilStopped(async (signal) => readOverOneConnection(await connect(), reading, signal), reading);
}

async function readOverOneConnection(client: Client, reading: Reading, signal: AbortSignal): Promise<void> {
  const { topic } = reading;
  let wake = () => {};
  /** Whether the ends of the partitions may have changed since they were read. */
  let isBehind = true;
  // Without a listener, a broken connection would end the process; the next statement rejects anyway.
  client.on('error', () => {
    isBehind = true;
    wake();
  });
  client.on('notification', ({ payload }) => {
    if (payload === joinedPayload(topic)) reading.onJoin?.();
    else if (payload !== topic) return;
    else isBehind = true;
    wake();
  });
  const stop = () => wake();
  signal.addEventListener('abort', stop);
  const inFlight = new Map<number, Promise<void>>();
  const pausedUntil = new Map<number, number>();
  try {
    // This connection commits nothing but offsets: if some are lost in a power cut, their records are read again.
    await client.query(`listen ${LOG_CHANNEL}; ${BY_INDEX}; set synchronous_commit = off`);
    const query = oneAtATime(client);
    const progress = await reading.start(query);
    const { positions } = progress;

    let ends = new Map<number, bigint>();

    async function handlePartition(partition: number, records: readonly LogRecord[]): Promise<void> {
      try {
        const next = await handleRecords(reading, partition, records, ends.get(partition) ?? 0n);
        await progress.commit?.(partition, next);
        // Moved to the end, so that the other partitions are read first.
        positions.delete(partition);
        positions.set(partition, next);
        if (next > (ends.get(partition) ?? 0n)) ends.set(partition, next);
      } catch (error) {
        if (error instanceof ReadAgain) {
          positions.set(partition, error.from);
          return;
        }
        reading.onError?.(error);
        pausedUntil.set(partition, performance.now() + RETRY_MS);
      } finally {
        inFlight.delete(partition);
        wake();
      }
    }

    while (!signal.aborted) {
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      if (isBehind) {
        isBehind = false;
        ends = new Map((await query(endsOf, [topic])).map(({ partition, next }) => [partition, BigInt(next)]));
      }
      let waitMs = (await progress.assign(ends, new Set(inFlight.keys()))) ?? POLL_MS * (1 + Math.random() / 5);
      const free = (reading.partitionsAtOnce ?? PARTITIONS_AT_ONCE) - inFlight.size;
      const due: (readonly [partition: number, position: bigint])[] = [];
      for (const [partition, position] of positions) {
        if (due.length >= free) break;
        if (position >= (ends.get(partition) ?? 0n) || inFlight.has(partition)) continue;
        const pauseMs = (pausedUntil.get(partition) ?? 0) - performance.now();
        if (pauseMs > 0) waitMs = Math.min(waitMs, pauseMs);
        else due.push([partition, position]);
      }
      if (due.length > 0) {
        const records = await readRecords(query, reading, due);
        for (const [partition] of due)
          inFlight.set(partition, handlePartition(partition, records.get(partition) ?? []));
      }
      const timer = setTimeout(() => {
        isBehind = true;
        wake();
      }, waitMs);
      if (!signal.aborted) await woken;
      clearTimeout(timer);
    }
  } finally {
    signal.removeEventListener('abort', stop);
    await Promise.all(inFlight.values());
    // Releases the partitions with the connection; closing a broken one may fail.
    await client.end().catch(() => undefined);
  }
}

/**
 * Reads the next records of partitions from their positions, in one statement: a round trip is what reading a few
 * costs.
 */
async function readRecords(
  query: RunQuery,
  { topic, maxRecords = MAX_RECORDS }: Reading,
  due: readonly (readonly [partition: number, position: bigint])[],
): Promise<Map<number, LogRecord[]>> {
  const [partitions, positions] = [due.map(([partition]) => partition), due.map(([, position]) => position)];
  const rows = await query(recordsFrom, [topic, partitions, positions, maxRecords]);
  const records = rows.map(({ partition, offset, key, headers, value, at }) => ({
    key,
    value,
    headers: headersOf(headers),
    partition,
    offset: BigInt(offset),
    timestamp: at.getTime(),
  }));
  return Map.groupBy(records, ({ partition }) => partition);
}

/** The headers of a record. Other programs than Signpost may have appended any JSON. */
function headersOf(json: unknown): Record<string, string> {
  if (!(json instanceof Object)) return {};
  return Object.fromEntries(Object.entries(json).map(([name, of]) => [name, typeof of === 'string' ? of : '']));
}

/** Handles records of a partition whose last known end is `end`; returns the next offset. */
async function handleRecords(
  { handle, onGap }: Reading,
  partition: number,
  records: readonly LogRecord[],
  end: bigint,
): Promise<bigint> {
  const [first, last] = [records[0], records.at(-1)];
  // If compaction or retention has deleted all of them, or a restore has left offsets out, reading continues at the
  // end.
  if (!first || !last) {
    await onGap?.(partition, end);
    return end;
  }
  // Like Kafka, from the first record that retention has left: otherwise nobody would notice what was never handled.
  await handle(records, first.offset);
  return last.offset + 1n;
}

/** Runs statements one at a time, as a connection requires. */
function oneAtATime(client: Client): RunQuery {
  let previous: Promise<unknown> = Promise.resolve();
  return (what, values) => {
    const answer = previous.then(() => run(client, what, values));
    // The caller handles a failure; the next statement runs regardless.
    previous = answer.catch(() => undefined);
    return answer;
  };
}

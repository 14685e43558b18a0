import type { Client } from 'pg';
import { BY_INDEX, run, statement } from '../postgres/sql.ts';
import type { ConsumeOptions, FollowOptions, LogRecord, Subscription } from './log.ts';
import { type Ask, joinGroup } from './postgres-members.ts';
import { keepReading, MOST_RECORDS, PARTITIONS_AT_ONCE, RETRY_MS } from './subscriptions.ts';

/** The channel on which publishers tell which topic has something new. */
const CHANNEL = 'signpost_log';

/** How often a reader looks without having been told: the price of a notification that was lost, in ms. */
const POLL_MS = 250;

/** What a reader does over one connection. */
interface Progress {
  /** Where the partitions that this reader may read stand; the one that comes first is read first. */
  readonly positions: Map<number, bigint>;
  /** Brings `positions` up to date, given where the partitions end and which have records in hand. */
  place(ends: ReadonlyMap<number, bigint>, inHand: ReadonlySet<number>): Promise<void> | void;
  /** Remembers that everything before `next` was handled. */
  commit?(partition: number, next: bigint): Promise<unknown>;
}

interface Reading {
  readonly topic: string;
  readonly maxRecords?: number;
  readonly partitionsAtOnce?: number;
  handle(records: readonly LogRecord[]): Promise<void> | void;
  onError?(error: unknown): void;
  /** Called for each connection. */
  start(ask: Ask): Promise<Progress> | Progress;
}

const endsOf = statement<{ partition: number; next: string }>(
  'log_reader_ends',
  'select partition, next from log_partitions where topic = $1',
);

/** Index: log_records_pkey, always (`BY_INDEX`). */
const recordsFrom = statement<{
  offset: string;
  key: string;
  headers: Record<string, string>;
  value: Buffer | null;
  at: Date;
}>(
  'log_records_from',
  `select "offset", key, headers, value, at from log_records
   where topic = $1 and partition = $2 and "offset" >= $3 order by "offset" limit $4`,
);

const commitOffset = statement(
  'log_commit',
  `insert into log_groups ("group", topic, partition, "offset") values ($1, $2, $3, $4)
   on conflict ("group", topic, partition) do update set "offset" = excluded."offset"`,
);

/** A member of a group: see `Log.consume`. It commits over the connection that holds its partitions, or not at all. */
export function consumeTopic(connect: () => Promise<Client>, options: ConsumeOptions): Subscription {
  const { group, topic } = options;
  return subscribe(connect, {
    ...options,
    async start(ask) {
      const positions = new Map<number, bigint>();
      const share = await joinGroup(ask, group, topic);
      return {
        positions,
        place: (_, inHand) => share(positions, inHand),
        commit: (partition, next) => ask(commitOffset, [group, topic, partition, next]),
      };
    },
  });
}

/** A reader of its own: see `Log.follow`. */
export function followTopic(connect: () => Promise<Client>, options: FollowOptions): Subscription {
  const positions = new Map(options.from);
  return subscribe(connect, {
    ...options,
    start: () => ({
      positions,
      place(ends) {
        for (const [partition, end] of ends) {
          const position = positions.get(partition);
          // Beyond the end, the topic was made anew or put back from a backup.
          if (position === undefined || position > end) positions.set(partition, 0n);
        }
      },
    }),
  });
}

/** Reads until it is stopped, over a connection of its own that is opened again whenever it breaks. */
function subscribe(connect: () => Promise<Client>, reading: Reading): Subscription {
  return keepReading(async (signal) => readOverOneConnection(await connect(), reading, signal), reading);
}

async function readOverOneConnection(client: Client, reading: Reading, signal: AbortSignal): Promise<void> {
  const { topic } = reading;
  let wake = () => {};
  // Unheard, a connection that breaks would end the process; the next statement rejects all the same.
  client.on('error', () => wake());
  client.on('notification', ({ payload }) => {
    if (payload === topic) wake();
  });
  const stop = () => wake();
  signal.addEventListener('abort', stop);
  const inHand = new Map<number, Promise<void>>();
  const rests = new Map<number, number>();
  try {
    await client.query(`listen ${CHANNEL}; ${BY_INDEX}`);
    const ask = inTurn(client);
    const progress = await reading.start(ask);
    const { positions } = progress;

    async function readPartition(partition: number, from: bigint, end: bigint): Promise<void> {
      try {
        const next = await readRecords(ask, reading, { partition, from, end });
        await progress.commit?.(partition, next);
        // Put last, so that the others have their turn.
        positions.delete(partition);
        positions.set(partition, next);
      } catch (error) {
        reading.onError?.(error);
        rests.set(partition, performance.now() + RETRY_MS);
      } finally {
        inHand.delete(partition);
        wake();
      }
    }

    while (!signal.aborted) {
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const ends = new Map((await ask(endsOf, [topic])).map(({ partition, next }) => [partition, BigInt(next)]));
      await progress.place(ends, new Set(inHand.keys()));
      for (const [partition, position] of positions) {
        if (inHand.size >= (reading.partitionsAtOnce ?? PARTITIONS_AT_ONCE)) break;
        const end = ends.get(partition) ?? 0n;
        if (position >= end || inHand.has(partition) || performance.now() < (rests.get(partition) ?? 0)) continue;
        inHand.set(partition, readPartition(partition, position, end));
      }
      const timer = setTimeout(() => wake(), POLL_MS);
      if (!signal.aborted) await woken;
      clearTimeout(timer);
    }
  } finally {
    signal.removeEventListener('abort', stop);
    await Promise.all(inHand.values());
    // Gives the partitions back with the connection; a broken one has nothing left to end.
    await client.end().catch(() => undefined);
  }
}

/** Handles the next records of a partition that ended at `end` when it was asked; gives the offset that comes next. */
async function readRecords(
  ask: Ask,
  { topic, maxRecords = MOST_RECORDS, handle }: Reading,
  { partition, from, end }: { partition: number; from: bigint; end: bigint },
): Promise<bigint> {
  const rows = await ask(recordsFrom, [topic, partition, from, maxRecords]);
  const records = rows.map(({ offset, key, headers, value, at }) => ({
    key,
    value,
    headers,
    partition,
    offset: BigInt(offset),
    timestamp: at.getTime(),
  }));
  const last = records.at(-1);
  // Where compaction or retention left nothing, it goes on at the end.
  if (!last) return end;
  await handle(records);
  return last.offset + 1n;
}

/** A connection takes one statement at a time. */
function inTurn(client: Client): Ask {
  let before: Promise<unknown> = Promise.resolve();
  return (what, values) => {
    const answer = before.then(() => run(client, what, values));
    // Whoever asked hears of a failure; the next one tries its own luck.
    before = answer.catch(() => undefined);
    return answer;
  };
}

import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from 'pg';
import { run, statement } from '../../db/sql.ts';
import type { LogRecord, Positions, Subscription } from './log.ts';

/** The channel on which publishers tell which topic has something new. */
export const CHANNEL = 'signpost_log';

/** How often a reader looks without having been told, and tries for partitions that nobody reads, in ms. */
const POLL_MS = 250;
const CLAIM_MS = 1_000;
/** After a failure, in ms. */
const RETRY_MS = 1_000;
/** Partitions that one subscription handles at a time. */
const CONCURRENT = 3;
const MOST_RECORDS = 5_000;

/** Where a reader stands: a group's offsets are kept in Postgres, a follower brings its own. */
export type Progress = { readonly group: string } | { readonly from: Positions };

interface ReaderOptions {
  readonly topic: string;
  readonly progress: Progress;
  readonly maxRecords?: number;
  handle(records: readonly LogRecord[]): Promise<void> | void;
  onError?(error: unknown): void;
  connect(): Promise<Client>;
}

const endsOf = statement<{ partition: number; next: string }>(
  'log_reader_ends',
  'select partition, next from log_partitions where topic = $1',
);

/** Index: log_records_pkey. */
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

/** A partition is a group member's as long as the connection lives that took the lock. */
const claim = statement<{ partition: number; offset: string | null }>(
  'log_claim',
  `select p.partition, g."offset" from log_partitions p
   left join log_groups g on g."group" = $1 and g.topic = p.topic and g.partition = p.partition
   where p.topic = $2 and p.partition <> all($3::integer[])
     and pg_try_advisory_lock(hashtext($1 || ' ' || p.topic), p.partition)`,
);

const commit = statement(
  'log_commit',
  `insert into log_groups ("group", topic, partition, "offset") values ($1, $2, $3, $4)
   on conflict ("group", topic, partition) do update set "offset" = excluded."offset"`,
);

/**
 * Reads a topic until it is stopped, over a connection of its own that is opened again whenever it breaks. A group
 * member takes every partition that no living member has; its offsets are committed over the connection that holds the
 * locks, so a member that lost them commits nothing.
 */
export function readTopic(options: ReaderOptions): Subscription {
  const stopping = new AbortController();
  const { signal } = stopping;
  const positions = new Map<number, bigint>('from' in options.progress ? options.progress.from : []);
  const running = (async () => {
    while (!signal.aborted) {
      try {
        await readOverOneConnection(options, positions, signal);
      } catch (error) {
        options.onError?.(error);
        await pause(RETRY_MS, signal);
      }
    }
  })();
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

async function readOverOneConnection(
  options: ReaderOptions,
  positions: Map<number, bigint>,
  signal: AbortSignal,
): Promise<void> {
  const { topic, progress } = options;
  const client = await options.connect();
  let wake = () => {};
  // Unheard, a connection that breaks would end the process; the next statement rejects all the same.
  client.on('error', () => wake());
  client.on('notification', ({ payload }) => {
    if (payload === topic) wake();
  });
  const stop = () => wake();
  signal.addEventListener('abort', stop);
  try {
    await client.query(`listen ${CHANNEL}`);
    if ('group' in progress) positions.clear();
    let claimed = 0;
    while (!signal.aborted) {
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      if ('group' in progress && Date.now() - claimed >= CLAIM_MS) {
        claimed = Date.now();
        for (const { partition, offset } of await run(client, claim, [progress.group, topic, [...positions.keys()]])) {
          positions.set(partition, BigInt(offset ?? 0));
        }
      }
      const ends = await run(client, endsOf, [topic]);
      const behind = ends.filter(({ partition, next }) => {
        const position = positions.get(partition) ?? ('from' in progress ? 0n : undefined);
        return position !== undefined && position < BigInt(next);
      });
      if (behind.length === 0) {
        await Promise.race([woken, pause(POLL_MS, signal)]);
      } else {
        await inTurns(behind, ({ partition, next }) =>
          readPartition(options, client, positions, partition, BigInt(next)),
        );
      }
    }
  } finally {
    signal.removeEventListener('abort', stop);
    // Ends the locks with the connection; a broken one has nothing left to end.
    await client.end().catch(() => undefined);
  }
}

/** Handles the next records of one partition, which ended at `end` when it was asked. */
async function readPartition(
  { topic, progress, maxRecords = MOST_RECORDS, handle }: ReaderOptions,
  client: Client,
  positions: Map<number, bigint>,
  partition: number,
  end: bigint,
): Promise<void> {
  const from = positions.get(partition) ?? 0n;
  const rows = await run(client, recordsFrom, [topic, partition, from, maxRecords]);
  const records = rows.map(({ offset, key, headers, value, at }) => ({
    key,
    value,
    headers,
    partition,
    offset: BigInt(offset),
    timestamp: at.getTime(),
  }));
  if (records.length > 0) await handle(records);
  // Where compaction or retention left nothing, the position still moves on.
  const last = records.at(-1);
  const position = last ? last.offset + 1n : end;
  if ('group' in progress) await run(client, commit, [progress.group, topic, partition, position]);
  positions.set(partition, position);
}

/** Works on a few at a time; rejects with the first failure once the others in hand have ended. */
async function inTurns<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const rest = [...items];
  const lanes = Array.from({ length: CONCURRENT }, async () => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) await work(item);
  });
  const failed = (await Promise.allSettled(lanes)).find((lane) => lane.status === 'rejected');
  if (failed) throw failed.reason;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return sleep(ms, undefined, { signal }).catch(() => undefined);
}

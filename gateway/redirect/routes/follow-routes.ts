import { fromBinary } from '@bufbuild/protobuf';
import type { Logger } from 'pino';
import type { Log, LogRecord, Positions, Subscription } from '../../../common/log/log.ts';
import { ROUTES } from '../../../common/log/topics.ts';
import { pause } from '../../../common/runtime/pause.ts';
import { throttledReport } from '../../../common/runtime/throttled-report.ts';
import { type Route, RouteSchema } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import { machineMs } from '../../clock/machine-ms.ts';
import { recentDurations } from './recent-durations.ts';
import type { Reached, RouteTable } from './route-table.ts';

/** A subscription that applies the topic of routes to the route table. */
export interface RouteFollower extends Subscription {
  status(): FollowerStatus;
}

export interface FollowerStatus {
  /** The number of records applied since the start. */
  readonly applied: number;
  /** When the last record was applied, in ms since 1970. */
  readonly lastAppliedAt: number | undefined;
  /** When the table was last known to contain the whole topic, by `machineMs`. */
  readonly complete: number | undefined;
  /** The time that recent changes took from the topic to the table, at the 99th percentile, in ms. */
  readonly changeLatencyMs: number | undefined;
}

const RETRY_MS = 1_000;

/**
 * The minimum interval of log lines about the same failure, in ms: while the disk is full, each partition fails every
 * second.
 */
const LOG_MS = 60_000;

/** Progress is logged after this many records, while an empty table is rebuilt. */
const PROGRESS_EVERY = 100_000;

/** How often the table's positions are compared with the end of the topic, in ms. */
const COMPARE_MS = 2_000;

/** The table could not be written, which is no failure of the log; `cause` says why. */
class TableNotWritten extends Error {
  override readonly name = 'TableNotWritten';
}

export interface FollowingOptions {
  readonly log: Log;
  readonly table: RouteTable;
  readonly logger: Logger;
  /** Called with the time that each change took from the topic to the table, in ms. */
  onChange?(latencyMs: number): void;
}

/** Resumes at the table's positions, so an empty table is rebuilt from the compacted topic. Returns at once. */
export function followRoutes({ log, table, logger, onChange = () => {} }: FollowingOptions): RouteFollower {
  const stopping = new AbortController();
  const { signal } = stopping;
  const started = Date.now();
  const latencies = recentDurations();
  let applied = 0;
  let backlog = 0n;
  let lastAppliedAt: number | undefined;
  let complete: number | undefined;
  let following: Subscription | undefined;
  const reportUnwritten = throttledReport(LOG_MS, (_, error: unknown) =>
    logger.error({ err: error }, 'the topic of routes can’t be followed; trying again'),
  );
  const reportUnread = throttledReport(LOG_MS, (_, error: unknown) =>
    logger.warn({ err: error }, 'routes can’t be read from the log; scans are answered from the route table as it is'),
  );

  async function advance(routes: readonly Route[], reached: Reached): Promise<void> {
    await table.advance(routes, reached).catch((cause: unknown) => {
      throw new TableNotWritten('routes can’t be written to disk', { cause });
    });
  }

  async function handle(records: readonly LogRecord[]): Promise<void> {
    const end = records.at(-1);
    if (!end) return;
    await advance(
      records.flatMap((record) => readRoute(record, logger)),
      { partition: end.partition, next: end.offset + 1n },
    );
    const before = applied;
    applied += records.length;
    lastAppliedAt = Date.now();
    for (const { timestamp } of records) {
      // Records from before the start have waited for this process, so their age says nothing about the latency.
      if (timestamp < started) continue;
      latencies.add(lastAppliedAt - timestamp);
      onChange(Math.max(0, lastAppliedAt - timestamp));
    }
    if (Math.floor(before / PROGRESS_EVERY) < Math.floor(applied / PROGRESS_EVERY)) {
      logger.info({ applied, of: Number(backlog) }, 'routes were applied');
    }
  }

  /** Retries to subscribe until it has, or was stopped: the disk may be full when the topic is replaced. */
  async function follow(): Promise<void> {
    while (!signal.aborted) {
      try {
        return await subscribe();
      } catch (error) {
        reportUnwritten(1, error);
        await pause(RETRY_MS, signal);
      }
    }
  }

  /** Subscribes to the current topic of that name; resolves when it has, or was stopped before the log answered. */
  async function subscribe(): Promise<void> {
    const topic = await waitForTopic(log, logger, signal);
    if (!topic) return;
    const { ends, identity } = topic;
    if (table.topic() !== identity) {
      if (table.positions().size > 0) logger.warn('the topic of routes was replaced; it is read from its beginning');
      await table.beginTopic(identity);
    }
    const from = validPositions(table.positions(), ends);
    for (const [partition, end] of ends) backlog += end - (from.get(partition) ?? 0n);
    if (backlog > 0n) logger.info({ behind: Number(backlog) }, 'the route table is catching up with its topic');
    following = log.follow({
      topic: ROUTES.name,
      from,
      handle,
      onGap: (partition, next) => advance([], { partition, next }),
      // The table writes those of all partitions in one commit.
      partitionsAtOnce: ROUTES.partitions,
      onError: (error) => (error instanceof TableNotWritten ? reportUnwritten(1, error.cause) : reportUnread(1, error)),
    });
  }

  async function compare(): Promise<void> {
    while (!signal.aborted) {
      const comparedAt = machineMs();
      const topic = await readTopicState(log).catch(() => undefined);
      if (signal.aborted) return;
      if (topic && topic.identity !== table.topic()) {
        await following?.stop();
        await follow();
        continue;
      }
      const ends = topic?.ends;
      const positions = table.positions();
      if (ends && [...ends].every(([partition, end]) => end <= (positions.get(partition) ?? 0n))) {
        complete = comparedAt;
        // If the disk is full, the next comparison tries again.
        if (!table.isComplete()) await table.markComplete().catch((error: unknown) => reportUnwritten(1, error));
      }
      await pause(COMPARE_MS, signal);
    }
  }

  const running = follow().then(compare);
  return {
    status: () => ({ applied, lastAppliedAt, complete, changeLatencyMs: latencies.percentile(0.99) }),
    async stop() {
      stopping.abort();
      await running;
      await following?.stop();
    },
  };
}

/** The current topic of that name. */
interface TopicState {
  readonly identity: string;
  readonly ends: Positions;
}

async function readTopicState(log: Log): Promise<TopicState> {
  const identity = await log.identity(ROUTES.name);
  return { identity, ends: await log.ends(ROUTES.name) };
}

/** Retries until the log answers; undefined if it was stopped before. */
async function waitForTopic(log: Log, logger: Logger, signal: AbortSignal): Promise<TopicState | undefined> {
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      return await readTopicState(log);
    } catch (error) {
      if (failures === 0)
        logger.warn({ err: error }, 'the log is unavailable; scans are answered from the route table as it is');
      await pause(RETRY_MS, signal);
    }
  }
  return undefined;
}

/**
 * Drops positions beyond the end of the topic: it was recreated or restored from a backup, so the partition has to be
 * read from its beginning. Versions make that idempotent.
 */
function validPositions(positions: Positions, ends: Positions): Positions {
  return new Map([...positions].filter(([partition, next]) => next <= (ends.get(partition) ?? 0n)));
}

/** An unreadable record is logged and skipped: the table keeps its previous route. */
function readRoute({ value, key, offset }: LogRecord, logger: Logger): Route[] {
  if (value === null) return [];
  try {
    const route = fromBinary(RouteSchema, value);
    if (route.entry.case !== undefined) return [route];
    logger.error({ key, offset: String(offset) }, 'a route of an unknown kind was skipped');
  } catch (error) {
    logger.error({ err: error, key, offset: String(offset) }, 'an unreadable route was skipped');
  }
  return [];
}

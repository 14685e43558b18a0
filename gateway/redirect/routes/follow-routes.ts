import { setTimeout as sleep } from 'node:timers/promises';
import { fromBinary } from '@bufbuild/protobuf';
import type { Logger } from 'pino';
import type { Log, LogRecord, Positions, Subscription } from '../../../common/log/log.ts';
import { ROUTES } from '../../../common/log/topics.ts';
import { type Route, RouteSchema } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import { machineMs } from '../../in-time.ts';
import { recentTimes } from '../answer/recent-times.ts';
import type { RouteTable } from './route-table.ts';

/** Follows the routes' topic into the table. */
export interface RouteFollower extends Subscription {
  status(): FollowerStatus;
}

export interface FollowerStatus {
  /** Records taken over since the start. */
  readonly taken: number;
  /** When the last one was, in ms since 1970. */
  readonly last: number | undefined;
  /** When the table was last known to have all that the topic had, by `machineMs`. */
  readonly complete: number | undefined;
  /** How long changes took from the topic into the table, lately, at the 99th percentile, in ms. */
  readonly changeLatencyMs: number | undefined;
}

const RETRY_MS = 1_000;

/** Tells how far the rebuilding of an empty table is, this often. */
const PROGRESS_EVERY = 100_000;

/** How often the end of the topic is compared with the table. */
const COMPARE_MS = 1_000;

export interface FollowingOptions {
  readonly log: Log;
  readonly table: RouteTable;
  readonly logger: Logger;
  /** Told how long each change took from the topic into the table, in ms. */
  onChange?(latencyMs: number): void;
}

/** Goes on where the table stands, so an empty table is rebuilt from the compacted topic. Returns at once. */
export function followRoutes({ log, table, logger, onChange = () => {} }: FollowingOptions): RouteFollower {
  const stopping = new AbortController();
  const { signal } = stopping;
  const started = Date.now();
  const latencies = recentTimes();
  let taken = 0;
  let behind = 0n;
  let last: number | undefined;
  let complete: number | undefined;
  let following: Subscription | undefined;

  async function handle(records: readonly LogRecord[]): Promise<void> {
    const end = records.at(-1);
    if (!end) return;
    const routes = records.flatMap((record) => readRoute(record, logger));
    await table.advance(routes, { partition: end.partition, next: end.offset + 1n });
    const before = taken;
    taken += records.length;
    last = Date.now();
    for (const { timestamp } of records) {
      // What was there before we were has waited for us, and says nothing of how fast changes are.
      if (timestamp < started) continue;
      latencies.add(last - timestamp);
      onChange(Math.max(0, last - timestamp));
    }
    if (Math.floor(before / PROGRESS_EVERY) < Math.floor(taken / PROGRESS_EVERY)) {
      logger.info({ taken, of: Number(behind) }, 'routes taken over');
    }
  }

  /** Follows the topic that has the name now; resolves when it does, or was stopped before the log answered. */
  async function follow(): Promise<void> {
    const found = await find(log, logger, signal);
    if (!found) return;
    const { ends, identity } = found;
    if (table.topic() !== identity) {
      if (table.positions().size > 0) logger.warn('the topic of routes is another one; it is read from its beginning');
      await table.beginTopic(identity);
    }
    const from = reachedIn(table.positions(), ends);
    for (const [partition, end] of ends) behind += end - (from.get(partition) ?? 0n);
    if (behind > 0n) logger.info({ behind: Number(behind) }, 'the route table follows its topic');
    following = log.follow({
      topic: ROUTES.name,
      from,
      handle,
      onError: (error) => logger.warn({ err: error }, 'routes can’t be followed; scans go on by the table as it is'),
    });
  }

  async function compare(): Promise<void> {
    while (!signal.aborted) {
      const asked = machineMs();
      const found = await ask(log).catch(() => undefined);
      if (signal.aborted) return;
      if (found && found.identity !== table.topic()) {
        await following?.stop();
        await follow();
        continue;
      }
      const ends = found?.ends;
      const positions = table.positions();
      if (ends && [...ends].every(([partition, end]) => end <= (positions.get(partition) ?? 0n))) complete = asked;
      await sleep(COMPARE_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  const running = follow().then(compare);
  return {
    status: () => ({ taken, last, complete, changeLatencyMs: latencies.percentile(0.99) }),
    async stop() {
      stopping.abort();
      await running;
      await following?.stop();
    },
  };
}

/** The topic that has the name now. */
interface FoundTopic {
  readonly identity: string;
  readonly ends: Positions;
}

async function ask(log: Log): Promise<FoundTopic> {
  const identity = await log.identity(ROUTES.name);
  return { identity, ends: await log.ends(ROUTES.name) };
}

/** Asks until there is an answer; undefined when it was stopped before. */
async function find(log: Log, logger: Logger, signal: AbortSignal): Promise<FoundTopic | undefined> {
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      return await ask(log);
    } catch (error) {
      if (failures === 0) logger.warn({ err: error }, 'the log is away; scans go on by the table as it is');
      await sleep(RETRY_MS, undefined, { signal }).catch(() => undefined);
    }
  }
  return undefined;
}

/**
 * Without positions that the topic has not reached: it was made anew or put back from a backup, and has to be read from
 * its beginning. Versions see to the rest.
 */
function reachedIn(positions: Positions, ends: Positions): Positions {
  return new Map([...positions].filter(([partition, next]) => next <= (ends.get(partition) ?? 0n)));
}

/** A record that can't be read is reported and left: the table keeps what it knew. */
function readRoute({ value, key, offset }: LogRecord, logger: Logger): Route[] {
  if (value === null) return [];
  try {
    const route = fromBinary(RouteSchema, value);
    if (route.entry.case !== undefined) return [route];
    logger.error({ key, offset: String(offset) }, 'a route of an unknown kind was left out');
  } catch (error) {
    logger.error({ err: error, key, offset: String(offset) }, 'an unreadable route was left out');
  }
  return [];
}

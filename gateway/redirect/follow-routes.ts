import { setTimeout as sleep } from 'node:timers/promises';
import { fromBinary } from '@bufbuild/protobuf';
import type { Logger } from 'pino';
import { type Route, RouteSchema } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import type { Log, LogRecord, Positions, Subscription } from '../../src/events/log/log.ts';
import { ROUTES } from '../../src/events/log/topics.ts';
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
}

const RETRY_MS = 1_000;

/** Tells how far the rebuilding of an empty table is, this often. */
const PROGRESS_EVERY = 100_000;

/** Goes on where the table stands, so an empty table is rebuilt from the compacted topic. Returns at once. */
export function followRoutes({ log, table, logger }: { log: Log; table: RouteTable; logger: Logger }): RouteFollower {
  const stopping = new AbortController();
  let taken = 0;
  let last: number | undefined;

  function handle(records: readonly LogRecord[]): void {
    const end = records.at(-1);
    if (!end) return;
    const routes = records.flatMap((record) => readRoute(record, logger));
    table.advance(routes, { partition: end.partition, next: end.offset + 1n });
    const before = taken;
    taken += records.length;
    last = Date.now();
    if (Math.floor(before / PROGRESS_EVERY) < Math.floor(taken / PROGRESS_EVERY)) {
      logger.info({ taken }, 'routes taken over');
    }
  }

  const following = startingPositions(log, table, logger, stopping.signal).then(
    (from) =>
      from &&
      log.follow({
        topic: ROUTES.name,
        from,
        handle,
        onError: (error) => logger.warn({ err: error }, 'routes can’t be followed; scans go on by the table as it is'),
      }),
  );
  return {
    status: () => ({ taken, last }),
    async stop() {
      stopping.abort();
      await (await following)?.stop();
    },
  };
}

/**
 * Where the table stands, without positions that the topic has not reached: it was made anew or put back from a backup,
 * and has to be read from its beginning. Versions see to the rest. Undefined when it was stopped before the log answered.
 */
async function startingPositions(
  log: Log,
  table: RouteTable,
  logger: Logger,
  signal: AbortSignal,
): Promise<Positions | undefined> {
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      const ends = await log.ends(ROUTES.name);
      return new Map([...table.positions()].filter(([partition, next]) => next <= (ends.get(partition) ?? 0n)));
    } catch (error) {
      if (failures === 0) logger.warn({ err: error }, 'the log is away; scans go on by the table as it is');
      await sleep(RETRY_MS, undefined, { signal }).catch(() => undefined);
    }
  }
  return undefined;
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

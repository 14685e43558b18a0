import { fromBinary } from '@bufbuild/protobuf';
import type { Logger } from 'pino';
import { type Route, RouteSchema } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import type { Log, LogRecord, Subscription } from '../../src/events/log/log.ts';
import { ROUTES } from '../../src/events/log/topics.ts';
import type { RouteTable } from './route-table.ts';

/** Follows the routes' topic into the table. */
export interface RouteFollower extends Subscription {
  /** What is known of how far it is: records taken over, and when the last one was (ms since 1970). */
  status(): { readonly taken: number; readonly last: number | null };
}

/** Tells how far the rebuilding of an empty table is, this often. */
const PROGRESS_EVERY = 100_000;

/** Goes on where the table stands, so an empty table is rebuilt from the compacted topic. */
export function followRoutes({ log, table, logger }: { log: Log; table: RouteTable; logger: Logger }): RouteFollower {
  let taken = 0;
  let last: number | null = null;
  const subscription = log.follow({
    topic: ROUTES.name,
    from: table.positions(),
    handle(records) {
      const end = records.at(-1);
      if (!end) return;
      const routes = records.flatMap((record) => readRoute(record, logger));
      table.apply(routes, { partition: end.partition, next: end.offset + 1n });
      const before = taken;
      taken += records.length;
      last = Date.now();
      if (Math.floor(before / PROGRESS_EVERY) < Math.floor(taken / PROGRESS_EVERY)) {
        logger.info({ taken }, 'routes taken over');
      }
    },
    onError: (error) => logger.warn({ err: error }, 'routes can not be followed; scans go on by the table as it is'),
  });
  return { ...subscription, status: () => ({ taken, last }) };
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

import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import type { Pool } from 'pg';
import { failure } from '../../common/contract/errors.ts';
import { type Log, RecordsTooLarge } from '../../common/log/log.ts';
import { EVENTS } from '../../common/log/topics.ts';
import type { AuditEventsRequest, EventsService } from '../../proto/gen/signpost/events/v1/events_pb.ts';
import { instantOrFailure } from '../calls/instants.ts';
import { type ComparedRow, compareEvents, compareRoutes } from './compare-outbox.ts';

/** Checks that the log has what was published and republishes it, for internal services. */
export function eventsService({
  pool,
  log,
  republishRoutes,
}: {
  readonly pool: Pool;
  readonly log: Log;
  /** Publishes the current routes of some keys of the topic; returns how many. */
  republishRoutes(keys: readonly string[]): Promise<number>;
}): ServiceImpl<typeof EventsService> {
  const optionsOf = ({ since }: Pick<AuditEventsRequest, 'since'>, signal: AbortSignal) => {
    return { pool, log, since: instantOrFailure('since', since)?.getTime() ?? 0, signal };
  };

  return {
    async auditEvents(request, { signal }) {
      const [events, routes] = [new Counts(), new Counts()];
      const options = optionsOf(request, signal);
      const kept = [
        await compareEvents(options, (rows) => events.add(rows)),
        await compareRoutes(options, (rows) => routes.add(rows)),
      ].flatMap(({ keptFrom }) => keptFrom ?? []);
      return {
        ...(kept.length > 0 && { keptFrom: timestampFromDate(new Date(Math.min(...kept.map(Number)))) }),
        events: events.message(),
        routes: routes.message(),
      };
    },

    async republishEvents(request, { signal }) {
      const options = optionsOf(request, signal);
      const selected = (rows: readonly ComparedRow[]) => rows.filter(({ found }) => request.all || !found);
      let events = 0;
      let routes = 0;
      await compareEvents(options, async (rows) => {
        const records = selected(rows);
        await log.publish(EVENTS.name, records).catch(rejectTooLarge);
        events += records.length;
      });
      // Compaction would keep an old route published after a newer one, so the current route is published instead.
      await compareRoutes(options, async (rows) => {
        const keys = new Set(selected(rows).map(({ key }) => key));
        routes += await republishRoutes([...keys]);
      });
      return { events: BigInt(events), routes: BigInt(routes) };
    },
  };
}

function rejectTooLarge(error: unknown): never {
  if (!(error instanceof RecordsTooLarge)) throw error;
  throw failure('UNAVAILABLE', `An event is too large for ${EVENTS.name}: raise its max.message.bytes.`, {}, error);
}

/** Counts rows, and how many of them the log has. */
class Counts {
  #published = 0;
  #found = 0;

  add(rows: readonly ComparedRow[]): void {
    this.#published += rows.length;
    this.#found += rows.filter(({ found }) => found).length;
  }

  message() {
    const missing = this.#published - this.#found;
    return { published: BigInt(this.#published), found: BigInt(this.#found), missing: BigInt(missing) };
  }
}

import type { Pool } from 'pg';
import type { Logger } from 'pino';
import { type Log, type Subscription, type Topic, TopicMismatch } from '../../common/log/log.ts';
import { ROUTES } from '../../common/log/topics.ts';
import { first, promptStatement, run, withConnection } from '../../common/postgres/sql.ts';
import { pause } from '../../common/runtime/pause.ts';
import { throttledFailures } from '../../common/runtime/throttled-report.ts';
import { LOCKS } from '../db/locks.ts';

/** How often to check for missing topics, in ms. */
const INTERVAL_MS = 5_000;

/** Each request replaces the row, so that it has another `xmin`. */
const requestRoutes = promptStatement(
  'events_request_routes',
  'insert into routes_due default values on conflict (single) do update set single = true',
);
const routesRequested = promptStatement<{ request: string }>(
  'events_routes_requested',
  'select xmin::text as request from routes_due',
);
/** Keeps the request if the routes have been requested again meanwhile. */
const finishRoutes = promptStatement('events_finish_routes', 'delete from routes_due where xmin::text = $1');
const lock = promptStatement<{ acquired: boolean }>(
  'events_lock_routes',
  'select pg_try_advisory_lock($1) as acquired',
);

/** Creates missing topics, at startup and later. */
export interface TopicUpkeep extends Subscription {
  /**
   * Creates them now; rejects with a TopicMismatch when an existing topic does not fit, and while the log is
   * unavailable. Does not wait for routes that have to be republished, of which there may be millions.
   */
  ensure(): Promise<void>;
}

/**
 * Creates missing topics, including those that disappear while this runs, and republishes all routes to a newly created
 * routes topic. The request to republish is stored before the topic is created and deleted after all routes are
 * published, so that another process carries it out if this one dies or stops in between. Any number of processes may
 * do this.
 */
export function startTopicUpkeep({
  topics,
  pool,
  log,
  logger,
  republishRoutes,
}: {
  readonly topics: readonly Topic[];
  readonly pool: Pool;
  readonly log: Log;
  readonly logger: Logger;
  /** Publishes the current routes of all codes and domains; returns how many. Rejects once the signal is aborted. */
  republishRoutes(stopping: AbortSignal): Promise<number>;
}): TopicUpkeep {
  const stopping = new AbortController();
  const { signal } = stopping;
  /** Resolved once the topics exist, for the first time. */
  const created = Promise.withResolvers<true>();
  let problem = '';
  let missed = '';
  const reportMismatch = throttledFailures((fields) => logger.error(fields, 'a topic keeps less than is needed'));

  async function ensure(): Promise<void> {
    await log.ensureTopics(topics, async (missing) => {
      if (missing.includes(ROUTES.name)) await run(pool, requestRoutes);
      // Not again each time, as creating them may fail for hours, for example for lack of a right.
      if (missing.join() !== missed) logger.warn({ topics: missing }, 'topics are missing and are created');
      missed = missing.join();
    });
    missed = '';
    created.resolve(true);
  }

  async function republish(): Promise<void> {
    if ((await run(pool, routesRequested)).length === 0) return;
    await withConnection(pool, async ({ client, markBroken }) => {
      const row = await first(client, lock, [LOCKS.routes]);
      if (!row?.acquired) return;
      try {
        const requested = await first(client, routesRequested);
        if (!requested) return;
        const routes = await republishRoutes(signal);
        await run(client, finishRoutes, [requested.request]);
        if (routes > 0) logger.warn({ routes }, 'all routes were republished to the new routes topic');
      } finally {
        await client.query(`select pg_advisory_unlock(${LOCKS.routes})`).catch(markBroken);
      }
    });
  }

  const running = (async () => {
    // At start the caller creates them, and the routes of a new topic are republished at once: a moment later, there
    // may be codes whose routes are on it already.
    let isEnsured = await Promise.race([created.promise, pause(INTERVAL_MS, signal).then(() => false)]);
    while (!signal.aborted) {
      try {
        if (!isEnsured) await ensure();
        isEnsured = false;
        await republish();
        problem = '';
      } catch (error) {
        if (signal.aborted) return;
        const { message } = error as Error;
        if (error instanceof TopicMismatch) {
          // An operator has changed it while this runs: unlike an outage, that does not end by itself.
          reportMismatch(error);
        } else {
          // Logged once per problem: the log may be unavailable for hours.
          if (message !== problem) logger.warn({ err: error }, 'topics could not be checked; trying again');
          problem = message;
        }
      }
      await pause(INTERVAL_MS, signal);
    }
  })();

  return {
    ensure,
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

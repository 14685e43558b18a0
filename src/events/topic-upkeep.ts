import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { Logger } from 'pino';
import type { Log, Subscription, Topic } from '../../common/log/log.ts';
import { ROUTES } from '../../common/log/topics.ts';
import { first, promptStatement, run, withConnection } from '../../common/postgres/sql.ts';
import { LOCKS } from '../db/locks.ts';

/** How often topics are looked for that are missing, in ms. */
const EVERY_MS = 5_000;

const owe = promptStatement('events_owe_routes', 'insert into routes_due default values on conflict do nothing');
const owed = promptStatement('events_owed_routes', 'select from routes_due');
const settle = promptStatement('events_settle_routes', 'delete from routes_due');
const lock = promptStatement<{ mine: boolean }>('events_lock_routes', 'select pg_try_advisory_lock($1) as mine');

/** Topics that are created where they are missing, at the start and later. */
export interface TopicUpkeep extends Subscription {
  /** Does it now; rejects with a TopicMismatch when one exists that does not fit, and while the log is unavailable. */
  ensure(): Promise<void>;
}

/**
 * Creates the topics that are missing, also those that disappear while this runs, and has all routes published to a topic
 * of routes that was created. That they are due is written down before the topic is created, so that it happens whoever
 * dies in between. Any number of processes may do it.
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
  /** Publishes where every code and domain leads; gives how many there were. */
  republishRoutes(): Promise<number>;
}): TopicUpkeep {
  const stopping = new AbortController();
  const { signal } = stopping;
  let problem = '';

  async function ensure(): Promise<void> {
    await log.ensureTopics(topics, async (missing) => {
      if (missing.includes(ROUTES.name)) await run(pool, owe);
      logger.warn({ topics: missing }, 'topics are missing and are created');
    });
    await republish();
  }

  async function republish(): Promise<void> {
    if ((await pool.query(owed)).rowCount === 0) return;
    await withConnection(pool, async ({ client, markBroken }) => {
      const turn = await first(client, lock, [LOCKS.routes]);
      if (!turn?.mine) return;
      try {
        const routes = await republishRoutes();
        await run(client, settle);
        if (routes > 0) logger.warn({ routes }, 'all routes are published to the topic of routes that was created');
      } finally {
        await client.query(`select pg_advisory_unlock(${LOCKS.routes})`).catch(markBroken);
      }
    });
  }

  const running = (async () => {
    while (!signal.aborted) {
      await sleep(EVERY_MS, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      try {
        await ensure();
        problem = '';
      } catch (error) {
        const { message } = error as Error;
        // Once for each: the log may be unavailable for hours.
        if (message !== problem) logger.warn({ err: error }, 'topics can’t be checked; it is tried again');
        problem = message;
      }
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

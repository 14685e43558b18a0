import type { Pool } from 'pg';
import type { Logger } from 'pino';
import { type Log, TopicMismatch } from '../../common/log/log.ts';
import { BY_COST, BY_INDEX, first, promptQuery, promptStatement, withConnection } from '../../common/postgres/sql.ts';
import { pause } from '../../common/runtime/pause.ts';
import { repeatUntilStopped } from '../../common/runtime/repeat-until-stopped.ts';
import { throttledFailures } from '../../common/runtime/throttled-report.ts';
import { LOCKS } from '../db/locks.ts';
import type { Notifications } from '../db/notifications.ts';
import { Leader, RETRY_MS } from './leader.ts';
import { BATCH, CHECK_MS, OutboxReader } from './outbox-reader.ts';
import { startOutboxRetention } from './outbox-retention.ts';
import type { TopicUpkeep } from './topic-upkeep.ts';

/** Publishes the outbox to the log. */
export interface Relay {
  /** Whether the last attempt succeeded: false while the outbox cannot be published. */
  healthy(): boolean;
  /** Finishes publishing the current rows and stops. */
  stop(): Promise<void>;
}

/** How often the relay polls while notifications don't arrive, in ms. */
const POLL_MS = 50;
/** Its longest pause after a batch that was not full, in ms. */
const PAUSE_MS = 20;
/** The pause while transactions that may not notify it are writing, in ms. */
const WRITING_MS = 10;

const tryToLock = promptStatement<{ acquired: boolean; database: string }>(
  'events_outbox_leadership',
  'select pg_try_advisory_lock($1) as acquired, current_database() as database',
);

/**
 * Creates missing topics and rejects with a TopicMismatch when an existing one does not fit. While the log is
 * unavailable the relay starts anyway and creates the topics before it publishes anything: only the outbox waits, and
 * not the core.
 */
export async function startRelayWithTopics(
  topics: Pick<TopicUpkeep, 'ensure'>,
  options: Omit<RelayOptions, 'prepare'>,
): Promise<Relay> {
  const { logger } = options;
  try {
    await topics.ensure();
    return startRelay(options);
  } catch (error) {
    if (error instanceof TopicMismatch) throw error;
    logger.error({ err: error }, 'the log is unavailable: events and routes wait in the outbox');
    return startRelay({ ...options, prepare: topics.ensure });
  }
}

export interface RelayOptions {
  readonly pool: Pool;
  readonly log: Log;
  readonly notifications: Notifications;
  readonly logger: Logger;
  /** How long published rows stay in the outbox, at least. */
  readonly retentionHours: number;
  prepare?(): Promise<void>;
}

/**
 * Starts relaying once `prepare` has succeeded. The relay advances past a row only after publishing it, so a crash at
 * any moment may repeat records but loses none. While Postgres or the log is unavailable it retries every second.
 */
export function startRelay({ pool, log, notifications, logger, retentionHours, prepare }: RelayOptions): Relay {
  let prepared = prepare === undefined;
  let healthy = prepared;
  const retention = startOutboxRetention(pool, retentionHours, logger);
  const wakeup = notifications.wakeup('outbox', POLL_MS);
  const reportFailure = throttledFailures((fields) => logger.warn(fields, 'the relay failed and retries in a second'));

  async function work(signal: AbortSignal): Promise<void> {
    if (!prepared) await prepare?.();
    prepared = true;
    await withConnection(pool, async ({ client, markBroken }) => {
      const lock = await first(client, tryToLock, [LOCKS.relay]);
      if (!lock?.acquired) {
        healthy = true;
        return;
      }
      try {
        await client.query(promptQuery(BY_INDEX));
        const outbox = await OutboxReader.open(client, retentionHours > 0);
        await using leader = new Leader(client, log, outbox, `signpost.relay.${lock.database}`, logger);
        while (!signal.aborted) {
          const start = performance.now();
          const published = await leader.publishNext();
          healthy = !leader.isRefused();
          if (published > 0) {
            await leader.wakeUp();
            // As long as the work took, so that under load the relay does not compete with the transactions that write.
            if (published < BATCH) await pause(Math.min(performance.now() - start, PAUSE_MS), signal);
          } else if (leader.isAsleep() || !notifications.arriving()) {
            await wakeup.wait(outbox.holes > 0 ? CHECK_MS : undefined);
          } else if (!(await leader.tryToSleep())) {
            await pause(WRITING_MS, signal);
          }
        }
      } finally {
        // If even this fails, closing the connection releases the lock.
        await client.query(promptQuery(`select pg_advisory_unlock_all(); ${BY_COST}`)).catch(markBroken);
      }
    });
    // Unless this is being stopped, another process has the lock.
    await pause(RETRY_MS, signal);
  }

  const relaying = repeatUntilStopped(work, {
    retryMs: RETRY_MS,
    onError(error) {
      healthy = false;
      reportFailure(error);
    },
    onStop: () => wakeup.notify(),
  });

  return {
    healthy: () => healthy,
    async stop() {
      await relaying.stop();
      await retention.stop();
    },
  };
}

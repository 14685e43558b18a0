import { setTimeout as sleep } from 'node:timers/promises';
import { SpanKind, trace } from '@opentelemetry/api';
import type { Pool, PoolClient } from 'pg';
import type { Logger } from 'pino';
import { type Log, type NewRecord, type Publisher, TopicMismatch } from '../../common/log/log.ts';
import { BY_COST, BY_INDEX, first, promptQuery, promptStatement, withConnection } from '../../common/postgres/sql.ts';
import { LOCKS } from '../db/locks.ts';
import { BATCH, OutboxReader } from './outbox-reader.ts';
import { startOutboxRetention } from './outbox-retention.ts';
import type { TopicUpkeep } from './topic-upkeep.ts';

/** Carries the outbox to the log. */
export interface Relay {
  /** There may be something new: look at once. Only a hint; the relay looks every 50 ms anyhow. */
  wake(): void;
  /** Whether the last try came to something: false while the outbox can't be carried. */
  working(): boolean;
  /** Finishes the records in hand and stops. */
  stop(): Promise<void>;
}

const IDLE_MS = 50;
const RETRY_MS = 1_000;
/** Brokers forget who leads a week after they were last told. */
const TELL_MS = 3_600_000;

const tryToLead = promptStatement<{ mine: boolean; database: string }>(
  'events_outbox_lead',
  'select pg_try_advisory_lock($1) as mine, current_database() as database',
);

const tracer = trace.getTracer('signpost.outbox');

/**
 * Has the topics created that are missing, and rejects with a TopicMismatch when one does not fit. While the log is
 * unavailable the relay starts all the same and does it before it carries anything: the outbox waits, and nothing else
 * has to.
 */
export async function startRelayOver(
  topics: Pick<TopicUpkeep, 'ensure'>,
  options: Omit<RelayOptions, 'prepare'>,
): Promise<Relay> {
  const { logger } = options;
  try {
    await topics.ensure();
    return startRelay(options);
  } catch (error) {
    if (error instanceof TopicMismatch) throw error;
    logger.error({ err: error }, 'the log is away: events and routes wait in the outbox');
    return startRelay({ ...options, prepare: topics.ensure });
  }
}

export interface RelayOptions {
  readonly pool: Pool;
  readonly log: Log;
  readonly logger: Logger;
  /** How long rows stay in the outbox once they are published, at least. */
  readonly keptHours: number;
  prepare?(): Promise<void>;
}

/**
 * Starts relaying, once `prepare` has succeeded. The relay moves on behind a row only once the log has it, so a crash at
 * any moment repeats records and loses none. While Postgres or the log is unavailable it tries again every second.
 */
export function startRelay({ pool, log, logger, keptHours, prepare }: RelayOptions): Relay {
  let prepared = prepare === undefined;
  let working = prepared;
  const retention = startOutboxRetention(pool, keptHours, logger);
  const stopping = new AbortController();
  let wake = () => {};

  async function work(): Promise<void> {
    if (!prepared) await prepare?.();
    prepared = true;
    await withConnection(pool, async ({ client, markBroken }) => {
      const lead = await first(client, tryToLead, [LOCKS.relay]);
      if (!lead?.mine) {
        working = true;
        return;
      }
      try {
        await client.query(promptQuery(BY_INDEX));
        const outbox = await OutboxReader.open(client, keptHours > 0);
        await using leadership = new Leadership(client, log, outbox, `signpost.relay.${lead.database}`);
        while (!stopping.signal.aborted) {
          const woken = new Promise<void>((resolve) => {
            wake = resolve;
          });
          const carried = await leadership.carry();
          working = true;
          if (carried < BATCH) await Promise.race([woken, pause(IDLE_MS)]);
        }
      } finally {
        // Where not even that succeeds, the end of the connection gives the lock back.
        await client.query(promptQuery(`select pg_advisory_unlock(${LOCKS.relay}); ${BY_COST}`)).catch(markBroken);
      }
    });
  }

  const pause = (ms: number) => sleep(ms, undefined, { signal: stopping.signal }).catch(() => undefined);

  const running = (async () => {
    while (!stopping.signal.aborted) {
      try {
        await work();
      } catch (error) {
        working = false;
        logger.warn({ err: error }, 'the relay tries again in a second');
      }
      await pause(RETRY_MS);
    }
  })();

  return {
    wake: () => wake(),
    working: () => working,
    async stop() {
      stopping.abort();
      await running;
      await retention.stop();
    },
  };
}

/** What whoever leads does, over the connection that holds the lead. */
class Leadership {
  readonly #client: PoolClient;
  readonly #log: Log;
  readonly #name: string;
  readonly #outbox: OutboxReader;
  #publisher: Publisher | undefined;
  #told = 0;

  constructor(client: PoolClient, log: Log, outbox: OutboxReader, name: string) {
    this.#client = client;
    this.#log = log;
    this.#outbox = outbox;
    this.#name = name;
  }

  /** Carries what waits, at most a batch; gives how many rows that were. */
  async carry(): Promise<number> {
    let rows = await this.#outbox.next();
    if (rows.length === 0) return 0;
    await tracer.startActiveSpan('outbox relay', { kind: SpanKind.PRODUCER }, async (span) => {
      try {
        let publisher = this.#publisher;
        if (!publisher || performance.now() - this.#told > TELL_MS) {
          publisher = await this.#tell();
          // What was read before may meanwhile have been carried by another leader, and newer things too.
          rows = await this.#outbox.next();
        }
        span.setAttribute('messaging.batch.message_count', rows.length);
        const byTopic = Map.groupBy(rows, ({ topic }) => topic);
        await Promise.all(
          [...byTopic].map(([topic, records]) => publisher.publish(topic, records satisfies NewRecord[])),
        );
        await this.#outbox.published(rows);
      } finally {
        span.end();
      }
    });
    return rows.length;
  }

  /** Opened only when there is something to publish: while the log is away, an empty outbox is carried well. */
  async #tell(): Promise<Publisher> {
    await this.#publisher?.close();
    this.#told = performance.now();
    this.#publisher = await this.#log.openFencedPublisher(this.#name, this.#client);
    return this.#publisher;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // What fails to end has nothing left to end.
    await this.#publisher?.close().catch(() => undefined);
  }
}

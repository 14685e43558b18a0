import { SpanKind, trace } from '@opentelemetry/api';
import type { PoolClient } from 'pg';
import type { Logger } from 'pino';
import { type Log, type NewRecord, type Publisher, RecordsTooLarge } from '../../common/log/log.ts';
import { first, promptStatement, run } from '../../common/postgres/sql.ts';
import { startActiveSpan } from '../../common/telemetry/active-span.ts';
import { LOCKS } from '../db/locks.ts';
import type { OutboxReader, WaitingRow } from './outbox-reader.ts';

/** How long the relay waits after a failure, and how long it leaves out refused topics at most, in ms. */
export const RETRY_MS = 1_000;
/** How often the publisher is reopened, in ms: brokers forget a transactional id a week after its last use. */
const REOPEN_MS = 3_600_000;
/**
 * The maximum number of holes up to which topics are published that the log does not refuse. Each row of a refused
 * topic among their rows leaves a hole, and all holes are written with each batch and read every second.
 */
const MAX_HOLES = 10_000;

const tryToSleep = promptStatement<{ asleep: boolean }>(
  'events_outbox_sleep',
  'select pg_try_advisory_lock($1) as asleep',
);
const wakeUp = promptStatement('events_outbox_wake_up', 'select pg_advisory_unlock($1)');

const tracer = trace.getTracer('signpost.outbox');

/** The work of the relay that leads, over the connection that holds the leadership lock. */
export class Leader {
  readonly #client: PoolClient;
  readonly #log: Log;
  readonly #name: string;
  readonly #outbox: OutboxReader;
  readonly #logger: Logger;
  #publisher: Publisher | undefined;
  /** How many rows are published together: after the log has refused some as too large fewer, to find out which. */
  #together = Number.POSITIVE_INFINITY;
  #openedAt = 0;
  #asleep = false;
  /** The topics that could not be published, and until when that is not tried again. */
  #refusal: { readonly error: Error; readonly topics: Set<string>; readonly until: number } | undefined;

  constructor(client: PoolClient, log: Log, outbox: OutboxReader, name: string, logger: Logger) {
    this.#client = client;
    this.#log = log;
    this.#outbox = outbox;
    this.#name = name;
    this.#logger = logger;
  }

  /**
   * Publishes at most one batch of waiting rows; returns how many it has tried to. Topics that the log refuses are left
   * out until the rows of the others are published, for a second at most; then it rejects with the refusal.
   */
  async publishNext(): Promise<number> {
    let rows = await this.#next();
    if (rows.length === 0) return 0;
    await startActiveSpan(tracer, 'outbox relay', { kind: SpanKind.PRODUCER }, async (span) => {
      try {
        let publisher = this.#publisher;
        if (!publisher || performance.now() - this.#openedAt > REOPEN_MS) {
          publisher = await this.#openPublisher();
          // Another leader may meanwhile have published these rows and newer ones.
          rows = await this.#next();
        }
        rows = rows.slice(0, this.#together);
        span.setAttribute('messaging.batch.message_count', rows.length);
        await this.#publish(publisher, rows);
      } finally {
        span.end();
      }
    });
    return rows.length;
  }

  async #next(): Promise<WaitingRow[]> {
    if (!this.#refusal) return this.#outbox.next();
    const { error, topics, until } = this.#refusal;
    const isTimeLeft = performance.now() < until && this.#outbox.holes < MAX_HOLES;
    const rows = isTimeLeft ? await this.#outbox.next([...topics]) : [];
    if (rows.length === 0) throw error;
    return rows;
  }

  /** Publishes the rows of each topic. A topic that the log refuses must not keep the others waiting. */
  async #publish(publisher: Publisher, rows: readonly WaitingRow[]): Promise<void> {
    const topics = [...Map.groupBy(rows, ({ topic }) => topic)];
    const outcomes = await Promise.allSettled(
      topics.map(([topic, records]) => publisher.publish(topic, records satisfies NewRecord[])),
    );
    const published = new Set(
      topics.flatMap(([topic], index) => (outcomes[index]?.status === 'fulfilled' ? topic : [])),
    );
    if (published.size > 0) await this.#outbox.published(rows.filter(({ topic }) => published.has(topic)));
    if (published.size === topics.length) {
      this.#together *= 2;
      return;
    }
    await this.#closePublisher();
    for (const [index, [topic, records]] of topics.entries()) {
      const outcome = outcomes[index];
      if (outcome?.status !== 'rejected') continue;
      if (outcome.reason instanceof RecordsTooLarge) await this.#publishFewer(records, outcome.reason);
      else this.#refuse(topic, outcome.reason);
    }
  }

  /**
   * A record that is too large for its topic must not keep all others waiting, so it is left out. It stays in the
   * outbox, from where it can be published again like one that the log has lost.
   */
  async #publishFewer(rows: readonly WaitingRow[], error: RecordsTooLarge): Promise<void> {
    this.#together = Math.ceil(rows.length / 2);
    const [row] = rows;
    if (rows.length > 1 || !row) return;
    const { topic, key, value, id } = row;
    this.#logger.error({ err: error, topic, key, bytes: value?.length, id }, 'a record is too large for its topic');
    await this.#outbox.published(rows, true);
  }

  #refuse(topic: string, cause: unknown): void {
    this.#refusal ??= {
      error: new Error(`records could not be published to ${topic}`, { cause }),
      topics: new Set(),
      until: performance.now() + RETRY_MS,
    };
    this.#refusal.topics.add(topic);
  }

  isRefused(): boolean {
    return this.#refusal !== undefined;
  }

  isAsleep(): boolean {
    return this.#asleep;
  }

  /**
   * Makes transactions that write to the outbox notify the relay. Returns false while a transaction that may not notify
   * it is writing. After success the outbox must be read once more before waiting for a notification.
   */
  async tryToSleep(): Promise<boolean> {
    this.#asleep = (await first(this.#client, tryToSleep, [LOCKS.relaySleeps]))?.asleep ?? false;
    return this.#asleep;
  }

  async wakeUp(): Promise<void> {
    if (this.#asleep) await run(this.#client, wakeUp, [LOCKS.relaySleeps]);
    this.#asleep = false;
  }

  /** Opened only when there is something to publish: with an empty outbox the relay is healthy without the log. */
  async #openPublisher(): Promise<Publisher> {
    await this.#closePublisher();
    this.#openedAt = performance.now();
    this.#publisher = await this.#log.openFencedPublisher(this.#name, this.#client);
    return this.#publisher;
  }

  async #closePublisher(): Promise<void> {
    // A publisher that fails to close has nothing left to release.
    await this.#publisher?.close().catch(() => undefined);
    this.#publisher = undefined;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#closePublisher();
  }
}

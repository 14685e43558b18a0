import type { Batch, Consumer, EachBatchPayload, Kafka, KafkaMessage } from 'kafkajs';
import { type Cluster, createWithCluster } from './kafkajs-cluster.ts';
import { type LogRecord, ReadAgain, type Subscription } from './log.ts';
import { MAX_RECORDS, PARTITIONS_AT_ONCE, RETRY_MS, readUntilStopped } from './subscriptions.ts';

/** Retries before a consumer is replaced. */
const RETRIES = { retries: 4, initialRetryTime: 100, maxRetryTime: 2_000 };
/** The partitions of a killed member are reassigned after this time. */
const SESSION_MS = 10_000;
const HEARTBEAT_MS = 3_000;
/** How long brokers hold a fetch without records: stopping takes up to this long. */
const FETCH_WAIT_MS = 1_000;
/**
 * The maximum size of a fetch, for one partition and in all: brokers fill it partition by partition, which kafkajs
 * lists in a different order each time. With 4 MiB a poll of the recorder is full, and it records a sixth more than
 * with the default of 1 MiB; a larger total only took more memory.
 */
const PARTITION_BYTES = 4 * 2 ** 20;
const FETCH_BYTES = 10 * 2 ** 20;

/** What a subscription reads, and what becomes of it. */
export interface Reading {
  readonly topic: string;
  readonly maxRecords?: number;
  readonly partitionsAtOnce?: number;
  handle(records: readonly LogRecord[], from: bigint): Promise<void> | void;
  onError?(error: unknown): void;
  group(): string;
  /** Called for each consumer, before it reads anything. */
  begin(member: Member): Promise<Progress> | Progress;
}

/** What kafkajs's types leave out. */
interface FetchedBatch extends Batch {
  /** The offset that was requested. */
  readonly fetchedOffset: string;
}

/** A connected consumer. */
interface Member {
  readonly consumer: Consumer;
  readonly cluster: Cluster;
  /** Aborted when the consumer ends, or is to be replaced: it must not handle anything new then. */
  readonly ended: AbortSignal;
  /** Replaces the consumer. */
  replace(): void;
}

/** Callbacks about the progress of a consumer. */
interface Progress {
  /** Called after each assignment of partitions; nothing read from them is handled before it resolves. */
  joined(partitions: readonly number[]): Promise<void> | void;
  /** Called after records were handled, with the next offset. */
  handled(payload: EachBatchPayload, next: bigint): Promise<void> | void;
  /** Continues at an earlier offset. */
  readAgain?(payload: EachBatchPayload, from: bigint): Promise<void>;
}

/**
 * Reads until it is stopped. On some errors kafkajs stops a consumer for good and reports that only by its CRASH event;
 * here a crashed consumer is replaced a second later.
 */
export function subscribe(kafka: Kafka, reading: Reading): Subscription {
  return readUntilStopped((signal) => readOnce(kafka, reading, signal), reading);
}

async function readOnce(kafka: Kafka, reading: Reading, signal: AbortSignal): Promise<void> {
  const { client: consumer, cluster } = createWithCluster(kafka, (own) =>
    own.consumer({
      groupId: reading.group(),
      allowAutoTopicCreation: false,
      sessionTimeout: SESSION_MS,
      heartbeatInterval: HEARTBEAT_MS,
      maxWaitTimeInMs: FETCH_WAIT_MS,
      maxBytesPerPartition: PARTITION_BYTES,
      maxBytes: FETCH_BYTES,
      retry: { ...RETRIES, restartOnFailure: () => Promise.resolve(false) },
    }),
  );
  const ending = new AbortController();
  const ended = Promise.withResolvers<void>();
  // Handled from here on: it may fail while the consumer is still starting.
  ended.promise.catch(() => undefined);
  const replace = () => {
    ending.abort();
    ended.resolve();
  };
  signal.addEventListener('abort', replace, { once: true, signal: ending.signal });
  if (signal.aborted) replace();
  consumer.on(consumer.events.CRASH, ({ payload }) => ended.reject(payload.error));
  try {
    await consumer.connect();
    await consumer.subscribe({ topic: reading.topic, fromBeginning: true });
    const progress = await reading.begin({ consumer, cluster, ended: ending.signal, replace });
    let joined: Promise<void> | undefined;
    consumer.on(consumer.events.GROUP_JOIN, ({ payload: { memberAssignment } }) => {
      joined = Promise.try(() => progress.joined(memberAssignment[reading.topic] ?? []));
      joined.catch(ended.reject);
    });
    await consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      partitionsConsumedConcurrently: reading.partitionsAtOnce ?? PARTITIONS_AT_ONCE,
      eachBatch: (payload) => readBatch(reading, progress, payload, () => joined, ending.signal),
    });
    await ended.promise;
  } finally {
    ending.abort();
    // Waits for the current batches.
    await consumer.disconnect();
  }
}

async function readBatch(
  reading: Reading,
  progress: Progress,
  payload: EachBatchPayload,
  joined: () => Promise<void> | undefined,
  ended: AbortSignal,
): Promise<void> {
  const { batch, heartbeat, isRunning, isStale, pause, resolveOffset } = payload;
  const maxRecords = reading.maxRecords ?? MAX_RECORDS;
  // A handler may take longer than the session timeout, and kafkajs sends heartbeats only between batches.
  const heartbeats = setInterval(() => {
    // The failure recurs after the batch, where kafkajs handles it.
    heartbeat().catch(() => undefined);
  }, HEARTBEAT_MS);
  try {
    await joined();
    let from = BigInt((batch as FetchedBatch).fetchedOffset);
    for (let at = 0; at < batch.messages.length && isRunning() && !isStale() && !ended.aborted; at += maxRecords) {
      const records = batch.messages.slice(at, at + maxRecords).map((message) => recordOf(message, batch.partition));
      const last = records.at(-1);
      if (!last) break;
      try {
        await reading.handle(records, from);
      } catch (error) {
        if (error instanceof ReadAgain) {
          await progress.readAgain?.(payload, error.from);
          break;
        }
        reading.onError?.(error);
        // They are not resolved, so they are fetched again after a pause of this partition only.
        setTimeout(pause(), RETRY_MS);
        break;
      }
      resolveOffset(String(last.offset));
      from = last.offset + 1n;
      // Rejects if the group was rebalanced meanwhile; kafkajs rejoins.
      await progress.handled(payload, from);
    }
  } finally {
    clearInterval(heartbeats);
  }
}

function recordOf({ key, value, headers, offset, timestamp }: KafkaMessage, partition: number): LogRecord {
  return {
    key: key?.toString() ?? '',
    value,
    headers: Object.fromEntries(Object.entries(headers ?? {}).map(([name, of]) => [name, String(of ?? '')])),
    partition,
    offset: BigInt(offset),
    timestamp: Number(timestamp),
  };
}

import { randomUUID } from 'node:crypto';
import type { Admin, Consumer, EachBatchPayload, Kafka, KafkaMessage } from 'kafkajs';
import { type ConsumeOptions, FOLLOWERS, type FollowOptions, type LogRecord, type Subscription } from './log.ts';
import { MAX_RECORDS, PARTITIONS_AT_ONCE, RETRY_MS, readUntilStopped } from './subscriptions.ts';

/** Retries before a consumer is replaced. */
const RETRIES = { retries: 4, initialRetryTime: 100, maxRetryTime: 2_000 };
/** The partitions of a killed member are reassigned after this time. */
const SESSION_MS = 10_000;
const HEARTBEAT_MS = 3_000;
/** How long brokers hold a fetch without records: stopping takes up to this long. */
const FETCH_WAIT_MS = 1_000;
/**
 * The maximum size of a fetch, for one partition and in all: brokers fill it partition by partition, which kafkajs lists
 * in a different order each time. With 4 MiB a poll of the recorder is full, and it records a sixth more than with the
 * default of 1 MiB; a larger total only took more memory.
 */
const PARTITION_BYTES = 4 * 2 ** 20;
const FETCH_BYTES = 10 * 2 ** 20;

interface Reading {
  readonly topic: string;
  readonly maxRecords?: number;
  readonly partitionsAtOnce?: number;
  handle(records: readonly LogRecord[]): Promise<void> | void;
  onError?(error: unknown): void;
  group(): string;
  /** Called before each consumer is created. */
  prepare?(): Promise<void>;
  /** Called after each assignment of partitions, before anything is read. */
  joined?(consumer: Consumer): void;
  /** Called after records were handled, with the next offset. */
  handled(payload: EachBatchPayload, next: bigint): Promise<void> | void;
}

/** Joins a consumer group: see `Log.consume`. */
export function consumeTopic(kafka: Kafka, options: ConsumeOptions): Subscription {
  return subscribe(kafka, {
    ...options,
    group: () => options.group,
    // Unlike `consumer.commitOffsets`, this also commits the current batch while the consumer is stopping.
    handled: ({ batch: { topic, partition }, commitOffsetsIfNecessary }, next) =>
      commitOffsetsIfNecessary({ topics: [{ topic, partitions: [{ partition, offset: String(next) }] }] }),
  });
}

/**
 * A reader without a group: see `Log.follow`. kafkajs reads only as a member of a group, so every follower creates one,
 * never commits, and seeks to its positions. Brokers delete a group that has neither members nor offsets.
 */
export function followTopic(kafka: Kafka, admin: () => Promise<Admin>, options: FollowOptions): Subscription {
  const { topic, group = FOLLOWERS } = options;
  const positions = new Map(options.from);
  return subscribe(kafka, {
    ...options,
    // A new one each time: a crashed consumer may still count as a member of the old one.
    group: () => `${group}.${randomUUID()}`,
    // If a position no longer exists (records were deleted, the topic was recreated), it starts at the oldest record.
    async prepare() {
      for (const { partition, low, high } of await (await admin()).fetchTopicOffsets(topic)) {
        const position = positions.get(partition);
        if (position !== undefined && (position < BigInt(low) || position > BigInt(high))) positions.delete(partition);
      }
    },
    joined(consumer) {
      for (const [partition, offset] of positions) consumer.seek({ topic, partition, offset: String(offset) });
    },
    handled({ batch }, next) {
      positions.set(batch.partition, next);
    },
  });
}

/**
 * Reads until it is stopped. On some errors kafkajs stops a consumer for good and reports that only by its CRASH event;
 * here a crashed consumer is replaced a second later.
 */
function subscribe(kafka: Kafka, reading: Reading): Subscription {
  return readUntilStopped((signal) => readOnce(kafka, reading, signal), reading);
}

async function readOnce(kafka: Kafka, reading: Reading, signal: AbortSignal): Promise<void> {
  await reading.prepare?.();
  const consumer = kafka.consumer({
    groupId: reading.group(),
    allowAutoTopicCreation: false,
    sessionTimeout: SESSION_MS,
    heartbeatInterval: HEARTBEAT_MS,
    maxWaitTimeInMs: FETCH_WAIT_MS,
    maxBytesPerPartition: PARTITION_BYTES,
    maxBytes: FETCH_BYTES,
    retry: { ...RETRIES, restartOnFailure: () => Promise.resolve(false) },
  });
  const ended = new Promise<void>((resolve, reject) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
    if (signal.aborted) resolve();
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
  });
  // Handled from here on: the crash may happen while the consumer is still starting.
  ended.catch(() => undefined);
  consumer.on(consumer.events.GROUP_JOIN, () => reading.joined?.(consumer));
  try {
    await consumer.connect();
    await consumer.subscribe({ topic: reading.topic, fromBeginning: true });
    await consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      partitionsConsumedConcurrently: reading.partitionsAtOnce ?? PARTITIONS_AT_ONCE,
      eachBatch: (payload) => readBatch(reading, payload),
    });
    await ended;
  } finally {
    // Waits for the current batches.
    await consumer.disconnect();
  }
}

async function readBatch(reading: Reading, payload: EachBatchPayload): Promise<void> {
  const { batch, heartbeat, isRunning, isStale, pause, resolveOffset } = payload;
  const maxRecords = reading.maxRecords ?? MAX_RECORDS;
  // A handler may take longer than the session timeout, and kafkajs sends heartbeats only between batches.
  const heartbeats = setInterval(() => {
    // The failure recurs after the batch, where kafkajs handles it.
    heartbeat().catch(() => undefined);
  }, HEARTBEAT_MS);
  try {
    for (let at = 0; at < batch.messages.length && isRunning() && !isStale(); at += maxRecords) {
      const records = batch.messages.slice(at, at + maxRecords).map((message) => recordOf(message, batch.partition));
      const last = records.at(-1);
      if (!last) break;
      try {
        await reading.handle(records);
      } catch (error) {
        reading.onError?.(error);
        // They are not resolved, so they are fetched again after a pause of this partition only.
        setTimeout(pause(), RETRY_MS);
        break;
      }
      resolveOffset(String(last.offset));
      // Rejects if the group was rebalanced meanwhile; kafkajs rejoins.
      await reading.handled(payload, last.offset + 1n);
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

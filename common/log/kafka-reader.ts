import { randomUUID } from 'node:crypto';
import type { Admin, Consumer, EachBatchPayload, Kafka, KafkaMessage } from 'kafkajs';
import type { ConsumeOptions, FollowOptions, LogRecord, Subscription } from './log.ts';
import { keepReading, MOST_RECORDS, PARTITIONS_AT_ONCE, RETRY_MS } from './subscriptions.ts';

/** Tried again before a consumer is given up and replaced. */
const RETRIES = { retries: 4, initialRetryTime: 100, maxRetryTime: 2_000 };
/** A member that was killed is replaced after this time. */
const SESSION_MS = 10_000;
const HEARTBEAT_MS = 3_000;
/** How long brokers hold a fetch that finds nothing: what stopping waits for. */
const FETCH_WAIT_MS = 1_000;
/**
 * The most bytes that a fetch brings of one partition, and of all: brokers fill it partition by partition, which kafkajs
 * names in another order each time. With 4 MiB a poll of the recorder is full, and it records a sixth more than with the
 * usual 1 MiB; more bytes in all brought nothing but memory.
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
  /** Before each consumer is made. */
  prepare?(): Promise<void>;
  /** Each time that partitions have been given out, before anything is read. */
  joined?(consumer: Consumer): void;
  /** After records were handled, with the offset that comes next. */
  handled(payload: EachBatchPayload, next: bigint): Promise<void> | void;
}

/** A member of a group, for ever: see `Log.consume`. */
export function consumeTopic(kafka: Kafka, options: ConsumeOptions): Subscription {
  return subscribe(kafka, {
    ...options,
    group: () => options.group,
    // Unlike `consumer.commitOffsets`, this also commits the batch in hand when the consumer has been told to stop.
    handled: ({ batch: { topic, partition }, commitOffsetsIfNecessary }, next) =>
      commitOffsetsIfNecessary({ topics: [{ topic, partitions: [{ partition, offset: String(next) }] }] }),
  });
}

/**
 * A reader of its own: see `Log.follow`. kafkajs reads only as a member of a group, so every follower makes one, never
 * commits, and says each time where to go on. Brokers forget a group that has neither members nor offsets.
 */
export function followTopic(kafka: Kafka, admin: () => Promise<Admin>, options: FollowOptions): Subscription {
  const { topic } = options;
  const positions = new Map(options.from);
  return subscribe(kafka, {
    ...options,
    // A new one each time: in the old one, a consumer that crashed may still count as a member.
    group: () => `signpost.follower.${randomUUID()}`,
    // Where there is nothing (records were deleted, the topic was made anew), it starts at the oldest kept record.
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
 * Reads until it is stopped. kafkajs ends a consumer for good on some errors, told only by its CRASH event; here any
 * crash leads to a new consumer a second later.
 */
function subscribe(kafka: Kafka, reading: Reading): Subscription {
  return keepReading((signal) => readOnce(kafka, reading, signal), reading);
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
  // Heard here already: it may come while the consumer is still being started.
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
    // Waits for the batches in hand.
    await consumer.disconnect();
  }
}

async function readBatch(reading: Reading, payload: EachBatchPayload): Promise<void> {
  const { batch, heartbeat, isRunning, isStale, pause, resolveOffset } = payload;
  const most = reading.maxRecords ?? MOST_RECORDS;
  // A handler may take longer than the session, and kafkajs beats only between batches.
  const beating = setInterval(() => {
    // What is wrong shows again after the batch, where kafkajs acts on it.
    heartbeat().catch(() => undefined);
  }, HEARTBEAT_MS);
  try {
    for (let at = 0; at < batch.messages.length && isRunning() && !isStale(); at += most) {
      const records = batch.messages.slice(at, at + most).map((message) => recordOf(message, batch.partition));
      const last = records.at(-1);
      if (!last) break;
      try {
        await reading.handle(records);
      } catch (error) {
        reading.onError?.(error);
        // Unresolved, they are fetched again, after a rest that holds no other partition up.
        setTimeout(pause(), RETRY_MS);
        break;
      }
      resolveOffset(String(last.offset));
      // Rejects where the group has changed meanwhile; kafkajs joins again.
      await reading.handled(payload, last.offset + 1n);
    }
  } finally {
    clearInterval(beating);
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

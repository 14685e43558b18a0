import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
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

/** How often a group checks whether its topic was replaced, in ms. */
const CHECK_MS = 5_000;

/** `Assignment`: what is known about the assigned partitions before anything is read from them. */
interface Reading<Assignment> {
  readonly topic: string;
  readonly maxRecords?: number;
  readonly partitionsAtOnce?: number;
  handle(records: readonly LogRecord[]): Promise<void> | void;
  onError?(error: unknown): void;
  group(): string;
  /** Called before each consumer is created. */
  prepare?(): Promise<void>;
  /** Called after each assignment of partitions; nothing that was read is handled before it resolves. */
  joined(consumer: Consumer, partitions: readonly number[]): Promise<Assignment> | Assignment;
  /** Rejects once the consumer has to be replaced, or resolves once the signal is aborted. */
  watch?(assignment: () => Promise<Assignment> | undefined, signal: AbortSignal): Promise<void>;
  /** Called after records were handled, with the next offset. */
  handled(payload: EachBatchPayload, next: bigint, assignment: Assignment): Promise<void> | void;
}

/** What a group queries besides reading. */
export interface GroupQueries {
  admin(): Promise<Admin>;
  /** See `Log.identity`. */
  identity(topic: string): Promise<string>;
}

/**
 * Joins a consumer group: see `Log.consume`. If the topic was deleted and created again, its offsets in the former one mean
 * nothing, but are valid as soon as the new one has as many records, which would then be skipped. So each commit contains
 * the identity of the topic, as its metadata, and a position in another topic is replaced by the beginning.
 */
export function consumeTopic(kafka: Kafka, { admin, identity }: GroupQueries, options: ConsumeOptions): Subscription {
  const { topic, group } = options;
  return subscribe<string>(kafka, {
    ...options,
    group: () => group,
    async joined(consumer, partitions) {
      const current = await identity(topic);
      const [committed] = await (await admin()).fetchOffsets({ groupId: group, topics: [topic] });
      for (const { partition, metadata } of committed?.partitions ?? []) {
        // Without metadata there is no position, or it was set by an operator or an older version.
        if (metadata && metadata !== current && partitions.includes(partition)) {
          consumer.seek({ topic, partition, offset: '0' });
        }
      }
      return current;
    },
    async watch(assignment, signal) {
      while (!signal.aborted) {
        await sleep(CHECK_MS, undefined, { signal }).catch(() => undefined);
        const known = await assignment();
        if (known === undefined) continue;
        // While it can't be queried it is checked later.
        const current = await identity(topic).catch(() => known);
        if (current !== known) throw new Error(`topic ${topic} was replaced; it is read from its beginning`);
      }
    },
    // Unlike `consumer.commitOffsets`, this also commits the current batch while the consumer is stopping.
    handled({ batch: { partition }, commitOffsetsIfNecessary }, next, metadata) {
      const offset = { partition, offset: String(next), metadata };
      return commitOffsetsIfNecessary({ topics: [{ topic, partitions: [offset] }] });
    },
  });
}

/**
 * A reader without a group: see `Log.follow`. kafkajs reads only as a member of a group, so every follower creates one,
 * never commits, and seeks to its positions. Brokers delete a group that has neither members nor offsets.
 */
export function followTopic(kafka: Kafka, admin: () => Promise<Admin>, options: FollowOptions): Subscription {
  const { topic, group = FOLLOWERS } = options;
  const positions = new Map(options.from);
  return subscribe<void>(kafka, {
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
function subscribe<Assignment>(kafka: Kafka, reading: Reading<Assignment>): Subscription {
  return readUntilStopped((signal) => readOnce(kafka, reading, signal), reading);
}

async function readOnce<Assignment>(kafka: Kafka, reading: Reading<Assignment>, signal: AbortSignal): Promise<void> {
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
  const ended = Promise.withResolvers<void>();
  // Handled from here on: it may fail while the consumer is still starting.
  ended.promise.catch(() => undefined);
  const watching = new AbortController();
  signal.addEventListener('abort', () => ended.resolve(), { once: true });
  if (signal.aborted) ended.resolve();
  let assignment: Promise<Assignment> | undefined;
  consumer.on(consumer.events.CRASH, ({ payload }) => ended.reject(payload.error));
  consumer.on(consumer.events.GROUP_JOIN, ({ payload: { memberAssignment } }) => {
    assignment = Promise.try(() => reading.joined(consumer, memberAssignment[reading.topic] ?? []));
    assignment.catch(ended.reject);
  });
  reading.watch?.(() => assignment, watching.signal).catch(ended.reject);
  try {
    await consumer.connect();
    await consumer.subscribe({ topic: reading.topic, fromBeginning: true });
    await consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      partitionsConsumedConcurrently: reading.partitionsAtOnce ?? PARTITIONS_AT_ONCE,
      eachBatch: async (payload) => readBatch(reading, payload, (await assignment) as Assignment),
    });
    await ended.promise;
  } finally {
    watching.abort();
    // Waits for the current batches.
    await consumer.disconnect();
  }
}

async function readBatch<Assignment>(
  reading: Reading<Assignment>,
  payload: EachBatchPayload,
  assignment: Assignment,
): Promise<void> {
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
      await reading.handled(payload, last.offset + 1n, assignment);
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

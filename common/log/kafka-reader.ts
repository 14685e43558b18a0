import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Admin, Consumer, EachBatchPayload, Kafka, KafkaMessage } from 'kafkajs';
import type { Logger } from 'pino';
import { kafkaTopicId } from './kafka-topic-id.ts';
import { type Cluster, type CommittedOffset, withClusters } from './kafkajs-cluster.ts';
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

interface Reading {
  readonly topic: string;
  readonly maxRecords?: number;
  readonly partitionsAtOnce?: number;
  handle(records: readonly LogRecord[]): Promise<void> | void;
  onError?(error: unknown): void;
  group(): string;
  /** Called for each consumer, before it reads anything. */
  begin(member: Member): Promise<Progress> | Progress;
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

/** Where a consumer reads, and what it has read. */
interface Progress {
  /** Called after each assignment of partitions; nothing read from them is handled before it resolves. */
  joined(partitions: readonly number[]): Promise<void> | void;
  /** Called after records were handled, with the next offset. */
  handled(payload: EachBatchPayload, next: bigint): Promise<void> | void;
}

/**
 * Joins a consumer group: see `Log.consume`. If the topic was deleted and created again, its offsets in the former one mean
 * nothing, but are valid as soon as the new one has as many records, which would then be skipped. So each commit contains
 * the topic's id as its metadata, and a position in another topic is replaced by the beginning.
 *
 * A consumer queries the id once, before it reads anything. So an id in a commit may be that of an earlier topic than its
 * offset, whereupon records are read again, but not that of a later one.
 */
export function consumeTopic(kafka: Kafka, logger: Logger, options: ConsumeOptions): Subscription {
  const { topic, group } = options;
  return subscribe(kafka, {
    ...options,
    group: () => group,
    async begin({ consumer, cluster, ended, replace }) {
      const currentId = () => kafkaTopicId(cluster, topic);
      const id = await currentId();
      const replaced = () => {
        logger.warn({ topic, group }, 'a topic was replaced; it is read from its beginning');
        replace();
      };
      void watchTopic(currentId, id, ended).then((isReplaced) => isReplaced && replaced());
      return {
        async joined(partitions) {
          const committed = await committedOffsets(cluster, group, topic, partitions);
          for (const { partition, offset } of committed) {
            // kafkajs may have read a commit just before Kafka deleted it together with the former topic.
            if (Number(offset) < 0) consumer.seek({ topic, partition, offset: '0' });
          }
          // Without metadata it was committed by an operator or an older version.
          const former = committed.filter(({ metadata }) => metadata && metadata !== id);
          if (former.length === 0) return;
          // Otherwise the commits are those of a member that has noticed it earlier.
          if ((await currentId()) === id) {
            const beginnings = former.map(({ partition }) => ({ topic, partition, offset: '0', metadata: id }));
            await consumer.commitOffsets(beginnings);
          }
          if (!ended.aborted) replaced();
        },
        // Unlike `consumer.commitOffsets`, this also commits the current batch while the consumer is stopping.
        handled({ batch: { partition }, commitOffsetsIfNecessary }, next) {
          const offset = { partition, offset: String(next), metadata: id };
          return commitOffsetsIfNecessary({ topics: [{ topic, partitions: [offset] }] });
        },
      };
    },
  });
}

/** Resolves to true once the topic has another id, or to false once `ended` is aborted. */
async function watchTopic(currentId: () => Promise<string>, id: string, ended: AbortSignal): Promise<boolean> {
  for (;;) {
    await sleep(CHECK_MS, undefined, { signal: ended }).catch(() => undefined);
    if (ended.aborted) return false;
    // If the query fails, or the topic is missing, it is checked again later.
    const current = await currentId().catch(() => id);
    if (current !== id && !ended.aborted) return true;
  }
}

async function committedOffsets(
  cluster: Cluster,
  groupId: string,
  topic: string,
  partitions: readonly number[],
): Promise<readonly CommittedOffset[]> {
  if (partitions.length === 0) return [];
  const coordinator = await cluster.findGroupCoordinator({ groupId });
  const topics = [{ topic, partitions: partitions.map((partition) => ({ partition })) }];
  const { responses } = await coordinator.offsetFetch({ groupId, topics });
  return responses.flatMap((response) => response.partitions);
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
    async begin({ consumer }) {
      // If a position no longer exists (records were deleted, the topic was recreated), it starts at the oldest record.
      for (const { partition, low, high } of await (await admin()).fetchTopicOffsets(topic)) {
        const position = positions.get(partition);
        if (position !== undefined && (position < BigInt(low) || position > BigInt(high))) positions.delete(partition);
      }
      return {
        joined() {
          for (const [partition, offset] of positions) consumer.seek({ topic, partition, offset: String(offset) });
        },
        handled({ batch }, next) {
          positions.set(batch.partition, next);
        },
      };
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
  let cluster: Cluster | undefined;
  const clusterOf = (created: Cluster) => {
    cluster = created;
    return created;
  };
  const consumer = withClusters(kafka, clusterOf).consumer({
    groupId: reading.group(),
    allowAutoTopicCreation: false,
    sessionTimeout: SESSION_MS,
    heartbeatInterval: HEARTBEAT_MS,
    maxWaitTimeInMs: FETCH_WAIT_MS,
    maxBytesPerPartition: PARTITION_BYTES,
    maxBytes: FETCH_BYTES,
    retry: { ...RETRIES, restartOnFailure: () => Promise.resolve(false) },
  });
  if (!cluster) throw new Error('kafkajs created no cluster for its consumer');
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
    for (let at = 0; at < batch.messages.length && isRunning() && !isStale() && !ended.aborted; at += maxRecords) {
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
      await progress.handled(payload, last.offset + 1n);
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

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs, { type Admin, type Consumer, type EachBatchPayload, type Kafka, type KafkaMessage } from 'kafkajs';
import type { Logger } from 'pino';
import { mendTimers } from './kafkajs-timers.ts';
import type {
  ConsumeOptions,
  FollowOptions,
  Log,
  LogRecord,
  NewRecord,
  Positions,
  Subscription,
  Topic,
} from './log.ts';

/** A publisher hears within about ten seconds that the brokers are away. */
const REQUEST_TIMEOUT_MS = 5_000;
const RETRIES = { retries: 4, initialRetryTime: 100, maxRetryTime: 2_000 };
const RETRY_MS = 1_000;
const HEARTBEAT_MS = 3_000;
/** Partitions that one subscription handles at a time. */
const CONCURRENT = 3;
const MOST_RECORDS = 5_000;
/** Copies of a topic, where there are as many brokers. */
const REPLICAS = 3;

/** The log in Kafka, by kafkajs with its traps mended; see `kafkajs-timers.ts`. */
export function openKafkaLog({
  brokers,
  clientId,
  logger,
}: {
  brokers: readonly string[];
  clientId: string;
  logger: Logger;
}): Log {
  mendTimers();
  const kafka = new kafkajs.Kafka({
    brokers: [...brokers],
    clientId,
    connectionTimeout: 3_000,
    requestTimeout: REQUEST_TIMEOUT_MS,
    retry: RETRIES,
    logLevel: kafkajs.logLevel.WARN,
    // kafkajs warns of everything that it will try again; who publishes or subscribes tells what matters.
    logCreator:
      () =>
      ({ log }) =>
        logger.debug({ kafkajs: log }, log.message),
  });
  const producer = kafka.producer({
    allowAutoTopicCreation: false,
    createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
    retry: RETRIES,
  });
  const admin = kafka.admin({ retry: RETRIES });
  const connectOnce = (connectable: { connect(): Promise<void> }) => {
    let connecting: Promise<void> | undefined;
    return () => {
      connecting ??= connectable.connect().catch((error: unknown) => {
        connecting = undefined;
        throw error;
      });
      return connecting;
    };
  };
  const producerReady = connectOnce(producer);
  const adminReady = connectOnce(admin);
  const subscriptions = new Set<Subscription>();

  function kept(subscription: Subscription): Subscription {
    subscriptions.add(subscription);
    return {
      stop: () => {
        subscriptions.delete(subscription);
        return subscription.stop();
      },
    };
  }

  return {
    async publish(topic, records: readonly NewRecord[]) {
      if (records.length === 0) return;
      await producerReady();
      const messages = records.map(({ key, value, headers }) => ({
        key,
        value: value === null ? null : Buffer.from(value.buffer, value.byteOffset, value.byteLength),
        ...(headers ? { headers: { ...headers } } : {}),
      }));
      await producer.send({ topic, messages, acks: -1 });
    },
    consume: (options) => kept(consumeGroup(kafka, options)),
    follow: (options) => kept(followTopic(kafka, options)),
    async ends(topic): Promise<Positions> {
      await adminReady();
      const offsets = await admin.fetchTopicOffsets(topic);
      return new Map(offsets.map(({ partition, high }) => [partition, BigInt(high)]));
    },
    async ensureTopics(topics) {
      await adminReady();
      await ensureTopics(admin, topics);
    },
    async check() {
      await adminReady();
      await admin.describeCluster();
    },
    async close() {
      await Promise.all([...subscriptions].map((subscription) => subscription.stop()));
      await Promise.all([producer.disconnect(), admin.disconnect()]);
    },
  };
}

interface Reading {
  readonly topic: string;
  readonly group: string;
  readonly maxRecords?: number;
  handle(records: readonly LogRecord[]): Promise<void> | void;
  onError?(error: unknown): void;
  /** Called once the consumer runs. */
  started?(consumer: Consumer): void;
  /** Called after records were handled, with what comes next. */
  handled(consumer: Consumer, partition: number, next: bigint): Promise<void> | void;
}

function consumeGroup(kafka: Kafka, options: ConsumeOptions): Subscription {
  const { topic } = options;
  return keepReading(kafka, {
    ...options,
    handled: (consumer, partition, next) => consumer.commitOffsets([{ topic, partition, offset: String(next) }]),
  });
}

/**
 * kafkajs reads only as a member of a group: every follower makes one of its own, commits nothing, and says where to
 * start. A group without members or offsets is forgotten by the brokers.
 */
function followTopic(kafka: Kafka, options: FollowOptions): Subscription {
  const { topic, handle } = options;
  const positions = new Map(options.from);
  return keepReading(kafka, {
    ...options,
    group: `signpost.follower.${randomUUID()}`,
    started: (consumer) => {
      for (const [partition, offset] of positions) consumer.seek({ topic, partition, offset: String(offset) });
    },
    // A fetch may have been under way before the seek.
    handle: (records) => {
      const fresh = records.filter(({ partition, offset }) => offset >= (positions.get(partition) ?? 0n));
      return fresh.length > 0 ? handle(fresh) : undefined;
    },
    handled: (_, partition, next) => {
      positions.set(partition, next);
    },
  });
}

/**
 * Reads until it is stopped. kafkajs ends a consumer for good on some errors, told only by its CRASH event; here any
 * crash leads to a new consumer a second later.
 */
function keepReading(kafka: Kafka, reading: Reading): Subscription {
  const stopping = new AbortController();
  const { signal } = stopping;
  const running = (async () => {
    while (!signal.aborted) {
      await readOnce(kafka, reading, signal).catch((error: unknown) => reading.onError?.(error));
      await sleep(RETRY_MS, undefined, { signal }).catch(() => undefined);
    }
  })();
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

async function readOnce(kafka: Kafka, reading: Reading, signal: AbortSignal): Promise<void> {
  const consumer = kafka.consumer({
    groupId: reading.group,
    allowAutoTopicCreation: false,
    retry: { ...RETRIES, restartOnFailure: () => Promise.resolve(false) },
  });
  const crashed = new Promise<never>((_, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
  });
  const stopped = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
  // Heard here already: it may come while the consumer is still being started.
  crashed.catch(() => undefined);
  try {
    await consumer.connect();
    await consumer.subscribe({ topic: reading.topic, fromBeginning: true });
    await consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      partitionsConsumedConcurrently: CONCURRENT,
      eachBatch: (payload) => readBatch(consumer, reading, payload),
    });
    reading.started?.(consumer);
    await Promise.race([stopped, crashed]);
  } finally {
    // Waits for the batches in hand.
    await consumer.disconnect();
  }
}

async function readBatch(consumer: Consumer, reading: Reading, payload: EachBatchPayload): Promise<void> {
  const { batch, heartbeat, isRunning, isStale, resolveOffset } = payload;
  const most = reading.maxRecords ?? MOST_RECORDS;
  // A handler may take longer than the session; kafkajs beats only when told to.
  const beating = setInterval(() => {
    heartbeat().catch((error: unknown) => reading.onError?.(error));
  }, HEARTBEAT_MS);
  try {
    for (let at = 0; at < batch.messages.length && isRunning() && !isStale(); at += most) {
      const records = batch.messages.slice(at, at + most).map((message) => recordOf(message, batch.partition));
      const last = records.at(-1);
      if (!last) break;
      await reading.handle(records);
      resolveOffset(String(last.offset));
      await reading.handled(consumer, batch.partition, last.offset + 1n);
    }
  } catch (error) {
    // What was not resolved is fetched again.
    reading.onError?.(error);
    await sleep(RETRY_MS);
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

async function ensureTopics(admin: Admin, topics: readonly Topic[]): Promise<void> {
  const existing = new Set(await admin.listTopics());
  const { brokers } = await admin.describeCluster();
  const missing = topics.filter(({ name }) => !existing.has(name));
  const wantedTopics = missing.map(({ name, partitions, retention }) => ({
    topic: name,
    numPartitions: partitions,
    replicationFactor: Math.min(REPLICAS, brokers.length),
    configEntries:
      retention === 'compact'
        ? [{ name: 'cleanup.policy', value: 'compact' }]
        : [
            { name: 'cleanup.policy', value: 'delete' },
            { name: 'retention.ms', value: String(retention) },
          ],
  }));
  if (wantedTopics.length > 0) await admin.createTopics({ waitForLeaders: true, topics: wantedTopics });
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: topics.map(({ name }) => ({
      type: kafkajs.ConfigResourceTypes.TOPIC,
      name,
      configNames: ['cleanup.policy'],
    })),
  });
  for (const { name, retention } of topics) {
    const entries = resources.find(({ resourceName }) => resourceName === name)?.configEntries ?? [];
    const policy = entries.find(({ configName }) => configName === 'cleanup.policy')?.configValue ?? '';
    const wanted = retention === 'compact' ? 'compact' : 'delete';
    if (policy !== wanted) {
      throw new Error(`topic ${name} exists with cleanup.policy=${policy}, but ${wanted} is needed`);
    }
  }
}

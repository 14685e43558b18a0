import kafkajs, { type Message } from 'kafkajs';
import type { Logger } from 'pino';
import { consumeTopic, followTopic } from './kafka-reader.ts';
import { ensureKafkaTopics } from './kafka-topics.ts';
import { mendConnect } from './kafkajs-connect.ts';
import { mendTimers } from './kafkajs-timers.ts';
import type { Log, NewRecord, Positions, Subscription } from './log.ts';

/** Two attempts of five seconds: a publisher hears within some ten seconds that the brokers are away. */
const REQUEST_TIMEOUT_MS = 5_000;
const CONNECT_TIMEOUT_MS = 3_000;
const RETRIES = { retries: 1, initialRetryTime: 200, maxRetryTime: 1_000 };

/**
 * The most bytes in one request, estimated. kafkajs makes one record batch of all that a request has for a partition,
 * and brokers refuse batches over 1 MiB unless they are told otherwise.
 */
const REQUEST_BYTES = 900_000;
/** What a record costs besides its key, value and headers, at most. */
const RECORD_BYTES = 40;

/** The log in Kafka, by kafkajs. Returns at once, whether brokers answer or not. */
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
  mendConnect();
  const kafka = new kafkajs.Kafka({
    brokers: [...brokers],
    clientId,
    connectionTimeout: CONNECT_TIMEOUT_MS,
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
    // Places keys as Java's producers do.
    createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
    retry: RETRIES,
  });
  const admin = kafka.admin({ retry: RETRIES });
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
    async publish(topic, records) {
      await producerReady();
      for (const messages of requests(records)) await producer.send({ topic, messages, acks: -1 });
    },
    consume: (options) => kept(consumeTopic(kafka, options)),
    follow: (options) => kept(followTopic(kafka, adminReady, options)),
    async ends(topic): Promise<Positions> {
      const offsets = await (await adminReady()).fetchTopicOffsets(topic);
      return new Map(offsets.map(({ partition, high }) => [partition, BigInt(high)]));
    },
    async ensureTopics(topics) {
      await ensureKafkaTopics(await adminReady(), topics);
    },
    async check() {
      await (await adminReady()).describeCluster();
    },
    async close() {
      await Promise.all([...subscriptions].map((subscription) => subscription.stop()));
      await Promise.all([producer.disconnect(), admin.disconnect()]);
    },
  };
}

/** Connects at the first use, and again after a failure; kafkajs itself mends connections that break later. */
function connectOnce<Client extends { connect(): Promise<void> }>(client: Client): () => Promise<Client> {
  let connecting: Promise<Client> | undefined;
  return () => {
    connecting ??= client.connect().then(
      () => client,
      (error: unknown) => {
        connecting = undefined;
        throw error;
      },
    );
    return connecting;
  };
}

/** Parts the records, in their order, into requests that brokers take. */
function* requests(records: readonly NewRecord[]): Generator<Message[]> {
  let request: Message[] = [];
  let bytes = 0;
  for (const { key, value, headers } of records) {
    let size = RECORD_BYTES + Buffer.byteLength(key) + (value?.length ?? 0);
    for (const header of Object.entries(headers ?? {}).flat()) size += 2 + Buffer.byteLength(header);
    if (request.length > 0 && bytes + size > REQUEST_BYTES) {
      yield request;
      request = [];
      bytes = 0;
    }
    request.push({
      key,
      value: value && Buffer.from(value.buffer, value.byteOffset, value.byteLength),
      ...(headers ? { headers: { ...headers } } : {}),
    });
    bytes += size;
  }
  if (request.length > 0) yield request;
}

import kafkajs from 'kafkajs';
import type { Logger } from 'pino';
import { openLeader, openPublisher, RETRIES } from './kafka-publisher.ts';
import { consumeTopic, followTopic } from './kafka-reader.ts';
import { kafkaTopicId } from './kafka-topic-id.ts';
import { ensureKafkaTopics } from './kafka-topics.ts';
import type { KafkaSecurity } from './kafka-variables.ts';
import { type Cluster, withClusters } from './kafkajs-cluster.ts';
import { mendConnect } from './kafkajs-connect.ts';
import { mendTimers } from './kafkajs-timers.ts';
import type { Log, Positions } from './log.ts';
import { Subscriptions } from './subscriptions.ts';

const REQUEST_TIMEOUT_MS = 5_000;
const CONNECT_TIMEOUT_MS = 3_000;

/** The log in Kafka, by kafkajs. Returns at once, whether brokers answer or not. */
export function openKafkaLog({
  brokers,
  security = {},
  clientId,
  logger,
}: {
  brokers: readonly string[];
  security?: KafkaSecurity;
  clientId: string;
  logger: Logger;
}): Log {
  mendTimers();
  mendConnect();
  const kafka = new kafkajs.Kafka({
    ...security,
    // kafkajs asks the first one first, and no other one while that takes connections and answers nothing.
    brokers: () => inAnyOrder(brokers),
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
  const publisher = openPublisher(kafka);
  let cluster: Cluster | undefined;
  const admin = withClusters(kafka, (created) => {
    cluster = created;
    return created;
  }).admin({ retry: RETRIES });
  const adminReady = connectOnce(admin);
  const subscriptions = new Subscriptions();

  return {
    publish: (topic, records) => publisher.publish(topic, records),
    lead: (name) => openLeader(kafka, name),
    consume: (options) => subscriptions.add(consumeTopic(kafka, options)),
    follow: (options) => subscriptions.add(followTopic(kafka, adminReady, options)),
    async ends(topic): Promise<Positions> {
      const offsets = await (await adminReady()).fetchTopicOffsets(topic);
      return new Map(offsets.map(({ partition, high }) => [partition, BigInt(high)]));
    },
    async since(topic, time): Promise<Positions> {
      const offsets = await (await adminReady()).fetchTopicOffsetsByTimestamp(topic, Math.max(0, time));
      return new Map(offsets.map(({ partition, offset }) => [partition, BigInt(offset)]));
    },
    async identity(topic) {
      await adminReady();
      if (!cluster) throw new Error('kafkajs made no cluster for its admin');
      return kafkaTopicId(cluster, topic);
    },
    async ensureTopics(topics, creating) {
      // One of its own: whatever kafkajs asks for, it also asks after every topic that this client has used, and fails
      // when one of them is missing.
      const own = kafka.admin({ retry: RETRIES });
      try {
        await own.connect();
        await ensureKafkaTopics(own, topics, creating);
      } finally {
        await own.disconnect();
      }
    },
    async check() {
      await (await adminReady()).describeCluster();
    },
    async close() {
      await subscriptions.stop();
      await Promise.all([publisher.close(), admin.disconnect()]);
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

function inAnyOrder(brokers: readonly string[]): string[] {
  return brokers
    .map((broker) => ({ broker, place: Math.random() }))
    .sort((one, other) => one.place - other.place)
    .map(({ broker }) => broker);
}

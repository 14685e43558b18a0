import kafkajs from 'kafkajs';
import type { Logger } from 'pino';
import { followTopic } from './kafka-follower.ts';
import { consumeTopic } from './kafka-group.ts';
import { openFencedPublisher, openPublisher, RETRIES } from './kafka-publisher.ts';
import { refusalReporter } from './kafka-refusals.ts';
import { kafkaTopicId } from './kafka-topic-id.ts';
import { ensureKafkaTopics } from './kafka-topics.ts';
import type { KafkaSecurity } from './kafka-variables.ts';
import { createWithCluster } from './kafkajs-cluster.ts';
import type { Log, Positions } from './log.ts';
import { patchConnect } from './patch-kafkajs-connect.ts';
import { patchHeartbeat } from './patch-kafkajs-heartbeat.ts';
import { patchTimers } from './patch-kafkajs-timers.ts';
import { Subscriptions } from './subscriptions.ts';

const REQUEST_TIMEOUT_MS = 5_000;
const CONNECT_TIMEOUT_MS = 3_000;

/** Opens the log in Kafka, using kafkajs. Returns at once, even if no broker is available. */
export function openKafkaLog({
  brokers,
  security = {},
  followers = 'signpost.follower',
  clientId,
  logger,
}: {
  brokers: readonly string[];
  security?: KafkaSecurity;
  /** The start of the names of the groups that its followers need. */
  followers?: string;
  clientId: string;
  logger: Logger;
}): Log {
  patchTimers();
  patchConnect();
  patchHeartbeat();
  const reportRefusal = refusalReporter(logger);
  const kafka = new kafkajs.Kafka({
    ...security,
    // kafkajs tries the first broker first, and no other one while that accepts connections without answering.
    brokers: () => inAnyOrder(brokers),
    clientId,
    connectionTimeout: CONNECT_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    retry: RETRIES,
    logLevel: kafkajs.logLevel.WARN,
    // kafkajs warns about everything that it retries; callers that publish or subscribe report what matters.
    logCreator:
      () =>
      ({ log }) => {
        logger.debug({ kafkajs: log }, log.message);
        reportRefusal(`${log.message}: ${log.error ?? ''}`);
      },
  });
  const publisher = openPublisher(kafka);
  const { client: admin, cluster } = createWithCluster(kafka, (own) => own.admin({ retry: RETRIES }));
  const adminReady = connectOnce(admin);
  const subscriptions = new Subscriptions();

  return {
    publish: (topic, records) => publisher.publish(topic, records),
    openFencedPublisher: (name) => openFencedPublisher(kafka, name),
    consume: (options) => subscriptions.add(consumeTopic(kafka, logger, options)),
    follow: (options) => subscriptions.add(followTopic(kafka, adminReady, followers, options)),
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
      return kafkaTopicId(cluster, topic);
    },
    async ensureTopics(topics, creating) {
      // A separate client: with every request, kafkajs also requests metadata of all topics that the client has used,
      // and fails if one of them is missing.
      const own = kafka.admin({ retry: RETRIES });
      try {
        await own.connect();
        await ensureKafkaTopics(own, topics, brokers.length, creating);
      } catch (error) {
        // kafkajs logs only that there are such errors.
        const { errors = [] } = error as { errors?: (Error & { topic?: string })[] };
        for (const { topic, message } of errors) reportRefusal(`creating topic ${topic}: ${message}`);
        throw error;
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

/** Connects on first use, and again after a failure; kafkajs itself re-establishes connections that break later. */
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

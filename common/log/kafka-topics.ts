import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs, { type Admin } from 'kafkajs';
import { type Topic, TopicMismatch } from './log.ts';

/** Replicas of a record if there are as many brokers, and how many must have it before it is acknowledged. */
const REPLICAS = 3;
const IN_SYNC = 2;

/**
 * The largest record batch that a topic accepts, in bytes: more than a request of `kafka-publisher.ts` has. It is set
 * in case the brokers' own limit is lower than Kafka's default, which is about the same.
 */
const MAX_BATCH_BYTES = 1024 * 1024;

/** How long a new topic may take to become usable, in ms. */
const USABLE_WITHIN_MS = 10_000;
const USABLE_POLL_MS = 50;

/**
 * Creates missing topics; rejects with a `TopicMismatch` if an existing one retains less than needed. `listed`: how
 * many brokers `KAFKA_BROKERS` lists.
 */
export async function ensureKafkaTopics(
  admin: Admin,
  topics: readonly Topic[],
  listed: number,
  creating: (missing: readonly string[]) => Promise<void> = async () => undefined,
): Promise<void> {
  const existing = new Set(await admin.listTopics());
  await checkTopics(
    admin,
    topics.filter(({ name }) => existing.has(name)),
  );
  const missing = topics.filter(({ name }) => !existing.has(name));
  if (missing.length === 0) return;
  await creating(missing.map(({ name }) => name));
  await createTopics(admin, missing, listed);
}

async function createTopics(admin: Admin, topics: readonly Topic[], listed: number): Promise<void> {
  const { brokers } = await admin.describeCluster();
  const replicas = Math.min(REPLICAS, Math.max(brokers.length, listed));
  // Replicas are not added later, so a topic that was created while brokers were down could lose records for ever
  // after.
  if (brokers.length < replicas) {
    throw new Error(
      `Only ${brokers.length} of ${listed} brokers are running: topics are created once ${replicas} are.`,
    );
  }
  // It does not fail if another process creates the same topics at the same time.
  await admin.createTopics({
    // Waiting would cover leaders only, and fails if a broker does not know the topic yet.
    waitForLeaders: false,
    topics: topics.map((topic) => ({
      topic: topic.name,
      numPartitions: topic.partitions,
      replicationFactor: replicas,
      configEntries: [
        { name: 'cleanup.policy', value: cleanupPolicy(topic) },
        { name: 'min.insync.replicas', value: String(Math.min(IN_SYNC, Math.max(1, replicas - 1))) },
        { name: 'max.message.bytes', value: String(MAX_BATCH_BYTES) },
        // In case the brokers allow it by default: a replica that lacks acknowledged records would become the leader.
        { name: 'unclean.leader.election.enable', value: 'false' },
        // By default a record has its publisher's time. Then brokers reject all records of a machine whose clock is an
        // hour ahead, and delete those of one whose clock is behind by the retention before anybody has read them.
        { name: 'message.timestamp.type', value: 'LogAppendTime' },
        ...(topic.retention === 'compact'
          ? []
          : [
              { name: 'retention.ms', value: String(topic.retention) },
              // In case the brokers limit the size of topics by default: that deletes records that nobody has read.
              { name: 'retention.bytes', value: '-1' },
            ]),
      ],
    })),
  });
  await untilUsable(
    admin,
    topics.map(({ name }) => name),
  );
}

/**
 * Waits until the leader of every partition serves it, which is later than brokers report a leader. Records published
 * before may be rejected in part, and would be published again as a whole.
 */
async function untilUsable(admin: Admin, topics: readonly string[]): Promise<void> {
  const deadline = performance.now() + USABLE_WITHIN_MS;
  for (const topic of topics) {
    for (;;) {
      try {
        await admin.fetchTopicOffsets(topic);
        break;
      } catch (error) {
        if (performance.now() > deadline) throw error;
        await sleep(USABLE_POLL_MS);
      }
    }
  }
}

async function checkTopics(admin: Admin, topics: readonly Topic[]): Promise<void> {
  if (topics.length === 0) return;
  const names = topics.map(({ name }) => name);
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: names.map((name) => ({
      type: kafkajs.ConfigResourceTypes.TOPIC,
      name,
      configNames: ['cleanup.policy', 'retention.ms'],
    })),
  });
  const metadata = await admin.fetchTopicMetadata({ topics: names });
  for (const topic of topics) {
    const { configEntries = [] } = resources.find(({ resourceName }) => resourceName === topic.name) ?? {};
    const setting = (name: string) => configEntries.find(({ configName }) => configName === name)?.configValue;
    const partitions = metadata.topics.find(({ name }) => name === topic.name)?.partitions.length ?? 0;
    const problem =
      problemOf(topic, setting('cleanup.policy'), Number(setting('retention.ms'))) ??
      (partitions < topic.partitions
        ? `has ${partitions} partitions, but at least ${topic.partitions} are needed`
        : undefined);
    if (problem !== undefined) throw new TopicMismatch(`topic ${topic.name} exists and ${problem}`);
  }
}

/** Describes how a topic's retention falls short, if it does. A retention of -1 means for ever. */
function problemOf(topic: Topic, policy: string | undefined, retention: number): string | undefined {
  const needed = cleanupPolicy(topic);
  if (policy !== needed) return `has cleanup.policy=${policy}, but ${needed} is needed`;
  if (topic.retention === 'compact' || retention === -1 || retention >= topic.retention) return undefined;
  return `has retention.ms=${retention}, but at least ${topic.retention} is needed`;
}

function cleanupPolicy({ retention }: Topic): string {
  return retention === 'compact' ? 'compact' : 'delete';
}

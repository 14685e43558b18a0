import kafkajs, { type Admin } from 'kafkajs';
import type { Topic } from './log.ts';

/** Copies of a record, where there are as many brokers; and how many must have it before a publisher hears so. */
const REPLICAS = 3;
const IN_SYNC = 2;

/** Creates the topics that are missing; rejects with a sentence when an existing one does not keep what is needed. */
export async function ensureKafkaTopics(admin: Admin, topics: readonly Topic[]): Promise<void> {
  const existing = new Set(await admin.listTopics());
  await checkTopics(
    admin,
    topics.filter(({ name }) => existing.has(name)),
  );
  await createTopics(
    admin,
    topics.filter(({ name }) => !existing.has(name)),
  );
}

async function createTopics(admin: Admin, topics: readonly Topic[]): Promise<void> {
  if (topics.length === 0) return;
  const { brokers } = await admin.describeCluster();
  const replicas = Math.min(REPLICAS, brokers.length);
  // Whoever creates the same topics at the same moment does not make this fail.
  await admin.createTopics({
    waitForLeaders: true,
    topics: topics.map((topic) => ({
      topic: topic.name,
      numPartitions: topic.partitions,
      replicationFactor: replicas,
      configEntries: [
        { name: 'cleanup.policy', value: cleanupPolicy(topic) },
        { name: 'min.insync.replicas', value: String(Math.min(IN_SYNC, Math.max(1, replicas - 1))) },
        ...(topic.retention === 'compact' ? [] : [{ name: 'retention.ms', value: String(topic.retention) }]),
      ],
    })),
  });
}

async function checkTopics(admin: Admin, topics: readonly Topic[]): Promise<void> {
  if (topics.length === 0) return;
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: topics.map(({ name }) => ({
      type: kafkajs.ConfigResourceTypes.TOPIC,
      name,
      configNames: ['cleanup.policy'],
    })),
  });
  for (const topic of topics) {
    const { configEntries = [] } = resources.find(({ resourceName }) => resourceName === topic.name) ?? {};
    const policy = configEntries.find(({ configName }) => configName === 'cleanup.policy')?.configValue;
    if (policy !== cleanupPolicy(topic)) {
      throw new Error(
        `topic ${topic.name} exists with cleanup.policy=${policy}, but ${cleanupPolicy(topic)} is needed`,
      );
    }
  }
}

function cleanupPolicy({ retention }: Topic): string {
  return retention === 'compact' ? 'compact' : 'delete';
}

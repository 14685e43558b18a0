import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import { pino } from 'pino';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import { openKafkaLog } from '../../common/log/kafka.ts';
import type { Log, Publisher } from '../../common/log/log.ts';
import { readTopic } from '../../common/log/read-topic.ts';
import { EVENTS } from '../../common/log/topics.ts';
import { afterFile } from '../harness/after-file.ts';
import { type KafkaCluster, startKafkaCluster } from '../harness/kafka-cluster.ts';

const RECORDS = 200;
const ATTEMPTS = 30;
/** How long a resumed broker takes to learn that others have become leaders, in ms. */
const METADATA_MS = 2_000;
// Without Java there is no cluster.
const noKafka = inject('kafkaBrokers') === null;

let cluster: KafkaCluster;
let log: Log;
beforeAll(async () => {
  if (noKafka) return;
  cluster = await startKafkaCluster();
  afterFile(async () => cluster[Symbol.asyncDispose]());
  log = openKafkaLog({
    brokers: cluster.clients.split(','),
    clientId: 'signpost-test',
    logger: pino({ level: 'silent' }),
  });
  afterFile(() => log.close());
  await log.ensureTopics([EVENTS]);
}, 180_000);

async function keysOnTopic(): Promise<Set<string>> {
  const keys = new Set<string>();
  const options = { topic: EVENTS.name, from: new Map(), ends: await log.ends(EVENTS.name) };
  await readTopic(log, { ...options, signal: AbortSignal.timeout(60_000) }, async (records) => {
    for (const { key } of records) keys.add(key);
  });
  return keys;
}

/** Resolves when a broker (1, 2 or 3) is no longer the leader of any partition. */
async function untilNotLeader(id: number): Promise<void> {
  const brokers = cluster.brokers.filter((_, index) => index !== id - 1).map((broker) => broker.brokers);
  const admin = new kafkajs.Kafka({ brokers, logLevel: kafkajs.logLevel.NOTHING }).admin();
  await admin.connect();
  const leaders = async () => {
    const { topics } = await admin.fetchTopicMetadata({ topics: [EVENTS.name] });
    return topics[0]?.partitions.map(({ leader }) => leader);
  };
  await expect.poll(leaders, { timeout: 60_000, interval: 100 }).not.toContain(id);
  await admin.disconnect();
}

function batch(name: string): { key: string; value: Buffer }[] {
  return Array.from({ length: RECORDS }, (_, index) => ({ key: `${name}-${index}`, value: Buffer.from('value') }));
}

/** Publishes again until it succeeds, as the shipper and the relay do. */
async function publish(open: () => Promise<Pick<Publisher, 'publish'>>, name: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await (await open()).publish(EVENTS.name, batch(name));
    } catch (error) {
      if (attempt === ATTEMPTS) throw error;
      await sleep(500);
    }
  }
}

async function expectOnTopic(name: string): Promise<void> {
  const found = await keysOnTopic();
  const missing = batch(name).filter(({ key }) => !found.has(key));
  expect(missing.map(({ key }) => key)).toEqual([]);
}

describe.skipIf(noKafka)('what was published successfully is on the topic', () => {
  test.each([
    ['a gateway', 1, async (): Promise<Pick<Publisher, 'publish'>> => log],
    // The log in Kafka does not use the connection of the leader's lock.
    ['the relay', 2, () => log.openFencedPublisher('signpost.relay.test', { query: () => Promise.reject() } as never)],
  ])(
    'after other brokers took over partitions unnoticed by %s',
    async (publisherName, id, open) => {
      const publisher = await open();
      await publisher.publish(EVENTS.name, batch(`${publisherName}, before`));
      const broker = cluster.brokers[id - 1];
      broker?.pause();
      await untilNotLeader(id);
      broker?.resume();
      await sleep(METADATA_MS);
      let current: typeof publisher | undefined = publisher;
      await publish(async () => {
        const used = current ?? (await open());
        current = undefined;
        return used;
      }, publisherName);
      await expectOnTopic(publisherName);
    },
    180_000,
  );

  test('while a broker accepts connections without answering: records arrive at the other brokers', async () => {
    await publish(async () => log, 'before');
    const [broker] = cluster.brokers;
    broker?.pause();
    await publish(async () => log, 'during');
    broker?.resume();
    await expectOnTopic('during');
  }, 400_000);
});

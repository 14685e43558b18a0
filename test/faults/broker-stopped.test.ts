import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import pg from 'pg';
import { pino } from 'pino';
import { beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { openKafkaLog } from '../../common/log/kafka.ts';
import type { Log, Publisher } from '../../common/log/log.ts';
import { readTopic } from '../../common/log/read-topic.ts';
import { EVENTS, TOPICS } from '../../common/log/topics.ts';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { EventsService } from '../../proto/gen/signpost/events/v1/events_pb.ts';
import { internal } from '../contract/internal.ts';
import { afterFile } from '../harness/after-file.ts';
import { type KafkaCluster, startKafkaCluster } from '../harness/kafka-cluster.ts';
import { startSignpost } from '../harness/processes.ts';
import { api, expectRecorded, startScans } from './power-cut-load.ts';
import { isThere } from './visitors.ts';

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

/** A client of one broker, connected until the test ends, once that broker knows of two that run. */
async function adminOfTwo(broker: string): Promise<kafkajs.Admin> {
  const admin = new kafkajs.Kafka({ brokers: [broker], logLevel: kafkajs.logLevel.NOTHING }).admin();
  await admin.connect();
  onTestFinished(() => admin.disconnect());
  await expect.poll(async () => (await admin.describeCluster()).brokers.length).toBe(2);
  return admin;
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

describe.skipIf(noKafka)('one of three brokers', () => {
  test('is killed under load: nothing acknowledged is lost, nothing is counted twice, and everything resumes', async () => {
    const signpost = await startSignpost({
      kafkaBrokers: cluster.clients,
      cores: 2,
      roles: ['rpc,relay', 'recorder,worker'],
    });
    const { apiKey } = await signpost.createAccount({ plan: Plan.ENTERPRISE });
    const create = async () => {
      const answer = await api(signpost, apiKey, 'POST', '/qr-codes', { target_url: 'https://example.com/' });
      expect(answer.status).toBe(201);
      return ((await answer.json()) as { data: CodeJson }).data;
    };
    const scanned = await create();
    const admin = new kafkajs.Kafka({ brokers: cluster.direct.split(','), logLevel: kafkajs.logLevel.NOTHING }).admin();
    await admin.connect();
    const { topics } = await admin.fetchTopicMetadata({ topics: TOPICS.map(({ name }) => name) });
    const copies = topics.flatMap(({ partitions }) => partitions.map(({ replicas }) => replicas.length));
    expect(new Set(copies)).toEqual(new Set([3]));
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false,
      resources: TOPICS.map(({ name }) => ({ type: kafkajs.ConfigResourceTypes.TOPIC, name })),
    });
    const inSync = resources.map(
      ({ configEntries }) => configEntries.find(({ configName }) => configName === 'min.insync.replicas')?.configValue,
    );
    expect(inSync).toEqual(TOPICS.map(() => '2'));
    await admin.disconnect();

    const scans = startScans(`${signpost.url}/r/${scanned.short_code}`, 0, 4);
    let created = 1;
    let isRunning = true;
    const creating = (async () => {
      for (; isRunning; created++) {
        await create();
        // An account may create no more than this in a minute.
        await sleep(500);
      }
    })();
    const moreScans = async (count: number) => {
      const before = scans.answered.size;
      await expect.poll(() => scans.answered.size, { timeout: 60_000 }).toBeGreaterThan(before + count);
    };
    await moreScans(300);
    const [broker] = cluster.brokers;
    await broker?.kill();
    await untilNotLeader(1);
    await moreScans(500);
    // With two of three brokers, all that waits is published and recorded.
    const recordedWithTwo = new Map(scans.answered);
    await expectRecorded(signpost.databaseUrl, scanned, recordedWithTwo);
    await broker?.start();
    await moreScans(300);
    isRunning = false;
    await Promise.all([creating, scans.stop()]);

    await expectRecorded(signpost.databaseUrl, scanned, scans.answered);
    const database = new pg.Pool({ connectionString: signpost.databaseUrl });
    onTestFinished(() => database.end());
    const waiting = async () => (await database.query('select from outbox_waiting limit 1')).rowCount;
    await expect.poll(waiting, { timeout: 60_000 }).toBe(0);
    const { events, routes } = await internal(signpost, EventsService).auditEvents({});
    expect([events?.missing, routes?.missing].map(Number)).toEqual([0, 0]);
    expect(Number(events?.published)).toBe(created);
    for (const process of [...signpost.cores, ...signpost.gateways]) {
      expect(isThere(process.pid), await process.log()).toBe(true);
    }
    await signpost.stop();
  }, 240_000);

  test('is down: topics are not created with fewer replicas, but once it runs', async () => {
    const topic = { name: 'test.replicas', partitions: 1, retention: 3_600_000 };
    const [broker] = cluster.brokers;
    await broker?.kill();
    onTestFinished(() => broker?.start());
    // One may know later than the other.
    const [admin] = await Promise.all(cluster.brokers.slice(1).map(({ brokers }) => adminOfTwo(brokers)));
    const failure = () =>
      log.ensureTopics([topic]).then(
        () => 'none',
        (error) => error.message,
      );
    // The first attempt may meet a connection to the broker that was killed.
    await expect.poll(failure).toBe('Only 2 of 3 brokers are running: topics are created once 3 are.');
    await broker?.start();
    await expect.poll(() => log.ensureTopics([topic]).catch(String)).toBeUndefined();
    const topics = (await admin?.fetchTopicMetadata({ topics: [topic.name] }))?.topics;
    expect(topics?.[0]?.partitions[0]?.replicas).toHaveLength(3);
  });
});

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
      onTestFinished(() => broker?.resume());
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
    onTestFinished(() => broker?.resume());
    broker?.pause();
    await publish(async () => log, 'during');
    broker?.resume();
    await expectOnTopic('during');
  }, 400_000);
});

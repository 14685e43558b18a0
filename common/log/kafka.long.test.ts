import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import { pino } from 'pino';
import { afterAll, describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import { startKafka } from '../../test/harness/kafka.ts';
import { HOUR_MS } from '../runtime/durations.ts';
import { openKafkaLog } from './kafka.ts';
import type { LogRecord } from './log.ts';
import { conformance } from './log-suite.fixture.ts';
import { openLog } from './open.ts';
import { SCANS, TOPICS } from './topics.ts';

// A separate broker, because it is killed and paused; a broker given by KAFKA_BROKERS is neither.
const brokers = inject('kafkaBrokers');
const broker =
  brokers === null || process.env.KAFKA_BROKERS
    ? undefined
    : // Brokers may limit the size of topics, whose records readers need for a time, or let a replica lead that lacks some.
      await startKafka({ settings: () => 'log.retention.bytes=100000000\nunclean.leader.election.enable=true\n' });
afterAll(() => broker?.stop());

const kafkaBrokers = (broker?.brokers ?? brokers ?? '').split(',');
const logger = pino({ level: 'silent' });
const open = () => openKafkaLog({ brokers: kafkaBrokers, clientId: 'signpost-test', logger });

/** A log and an admin client, which end with the test. `deleteTopic` resolves when the topic is gone. */
async function openWithAdmin() {
  const log = open();
  const admin = new kafkajs.Kafka({ brokers: kafkaBrokers, logLevel: kafkajs.logLevel.NOTHING }).admin();
  onTestFinished(async () => void (await Promise.all([log.close(), admin.disconnect()])));
  await admin.connect();
  async function deleteTopic(topic: string): Promise<void> {
    // kafkajs queries the topic after deleting it.
    await admin.deleteTopics({ topics: [topic] }).catch(() => undefined);
    await vi.waitFor(() => expect(log.identity(topic)).rejects.toThrow(`topic ${topic} does not exist`), {
      timeout: 10_000,
    });
  }
  return { log, admin, deleteTopic };
}

describe.skipIf(brokers === null)('over a real Apache Kafka', () => {
  conformance('Kafka', () => ({
    open,
    options: { kafkaBrokers, databaseUrl: '' },
    restart:
      broker &&
      (async () => {
        await broker.kill();
        await broker.start();
      }),
  }));

  test('every topic is created with its partitions, retention and compaction, and then found', async () => {
    const { log, admin } = await openWithAdmin();
    await log.ensureTopics(TOPICS);
    await log.ensureTopics(TOPICS);
    const { topics } = await admin.fetchTopicMetadata({ topics: TOPICS.map(({ name }) => name) });
    for (const { name, partitions, retention } of TOPICS) {
      expect(topics.find((topic) => topic.name === name)?.partitions).toHaveLength(partitions);
      const { resources } = await admin.describeConfigs({
        includeSynonyms: false,
        resources: [{ type: kafkajs.ConfigResourceTypes.TOPIC, name }],
      });
      const entries = resources[0]?.configEntries ?? [];
      const set = Object.fromEntries(entries.map(({ configName, configValue }) => [configName, configValue]));
      expect(set['cleanup.policy']).toBe(retention === 'compact' ? 'compact' : 'delete');
      expect(set['max.message.bytes']).toBe('1048576');
      expect(set['message.timestamp.type']).toBe('LogAppendTime');
      expect(set['unclean.leader.election.enable']).toBe('false');
      if (retention === 'compact') continue;
      expect(set['retention.ms']).toBe(String(retention));
      expect(set['retention.bytes']).toBe('-1');
    }
  });

  test('installations with different prefixes share a cluster without seeing each other', async () => {
    const options = { kafkaBrokers, databaseUrl: '', clientId: 'signpost-test', logger };
    const prefixes = ['one.', 'other-'].map((end) => `${randomUUID()}-${end}`);
    const [one, other] = await Promise.all(prefixes.map((kafkaPrefix) => openLog({ ...options, kafkaPrefix })));
    const opened = [one, other].filter((log) => log !== undefined);
    onTestFinished(async () => void (await Promise.all(opened.map((log) => log.close()))));
    const created: string[][] = [];
    for (const log of opened) await log.ensureTopics([SCANS], async (missing) => void created.push([...missing]));
    expect(created).toEqual([[SCANS.name], [SCANS.name]]);
    const received: string[][] = [[], []];
    for (const [index, log] of opened.entries()) {
      const handle = async (records: readonly LogRecord[]) => {
        for (const { value } of records) received[index]?.push(Buffer.from(value ?? []).toString());
      };
      log.consume({ topic: SCANS.name, group: 'signpost.test', handle });
      log.follow({ topic: SCANS.name, from: new Map(), handle });
      await log.publish(SCANS.name, [{ key: 'a', value: Buffer.from(`of ${index}`) }]);
    }
    await expect
      .poll(() => received)
      .toEqual([
        ['of 0', 'of 0'],
        ['of 1', 'of 1'],
      ]);
    expect((await one?.identity(SCANS.name)) === (await other?.identity(SCANS.name))).toBe(false);
    const { admin } = await openWithAdmin();
    const groups = (await admin.listGroups()).groups.map(({ groupId }) => groupId);
    for (const prefix of prefixes) {
      const ours = groups.filter((group) => group.startsWith(prefix)).map((group) => group.slice(prefix.length));
      expect(new Set(ours.map((group) => group.replace(/^follower\..*/, 'follower.')))).toEqual(
        new Set(['follower.', 'test']),
      );
    }
  });

  test.each([
    [{ numPartitions: 3 }, [], 'has 3 partitions, but at least 4 are needed'],
    [{}, [['retention.ms', '1000']], 'has retention.ms=1000, but at least 3600000 is needed'],
    [{}, [['cleanup.policy', 'compact']], 'has cleanup.policy=compact, but delete is needed'],
    [{ numPartitions: 9 }, [['retention.ms', '-1']], undefined],
  ])('a topic of others with %j and %j: %s', async (shape, entries, problem) => {
    const { log, admin } = await openWithAdmin();
    const topic = `test.${randomUUID()}`;
    const configEntries = entries.map(([name = '', value = '']) => ({ name, value }));
    await admin.createTopics({ topics: [{ topic, numPartitions: 4, ...shape, configEntries }] }).catch(() => undefined);
    await vi.waitFor(() => admin.fetchTopicMetadata({ topics: [topic] }), { timeout: 10_000 });
    const ensured = log.ensureTopics([{ name: topic, partitions: 4, retention: 3_600_000 }]);
    if (problem === undefined) await ensured;
    else await expect(ensured).rejects.toThrow(`topic ${topic} exists and ${problem}`);
  });

  test.each([2, -8 * 24])(
    'a record has the time of the broker, also from a clock that is wrong by %i hours',
    async (hours) => {
      const { log } = await openWithAdmin();
      const topic = `test.${randomUUID()}`;
      await log.ensureTopics([{ name: topic, partitions: 1, retention: 7 * 24 * HOUR_MS }]);
      const now = Date.now();
      const clock = vi.spyOn(Date, 'now').mockImplementation(() => now + hours * HOUR_MS);
      await log.publish(topic, [{ key: 'k', value: Buffer.from('v') }]).finally(() => clock.mockRestore());
      const timestamps: number[] = [];
      log.follow({
        topic,
        from: new Map(),
        handle: (records) => void timestamps.push(...records.map(({ timestamp }) => timestamp)),
      });
      await expect.poll(() => timestamps.length).toBe(1);
      expect(Math.abs((timestamps[0] ?? 0) - now)).toBeLessThan(HOUR_MS / 2);
    },
  );

  test('a member stays in its group, and reads nothing twice, after its clock was set back by an hour', async () => {
    const { log } = await openWithAdmin();
    const topic = `test.${randomUUID()}`;
    await log.ensureTopics([{ name: topic, partitions: 1, retention: HOUR_MS }]);
    const received: string[] = [];
    log.consume({
      topic,
      group: `test.${randomUUID()}`,
      handle: async (records) => void received.push(...records.map(({ value }) => String(value))),
    });
    await log.publish(topic, [{ key: 'k', value: Buffer.from('before') }]);
    await expect.poll(() => received).toEqual(['before']);
    const { now } = Date;
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() - HOUR_MS);
    onTestFinished(() => void clock.mockRestore());
    // Longer than its session, in which nothing is committed.
    await sleep(13_000);
    await log.publish(topic, [{ key: 'k', value: Buffer.from('after') }]);
    await sleep(3_000);
    expect(received).toEqual(['before', 'after']);
  });

  test('a topic that was deleted and created again is distinguished from the previous one', async () => {
    const { log, deleteTopic } = await openWithAdmin();
    const topic = `test.${randomUUID()}`;
    const ensure = () => log.ensureTopics([{ name: topic, partitions: 1, retention: 3_600_000 }]);
    await ensure();
    const before = await log.identity(topic);
    expect(before).toMatch(/^[0-9a-f]{32}$/);
    expect(await log.identity(topic)).toBe(before);
    await deleteTopic(topic);
    await ensure();
    await vi.waitFor(async () => expect(await log.identity(topic)).not.toBe(before), { timeout: 10_000 });
  });

  test('a group reads a topic that was deleted and created again from its beginning, also with more records', async () => {
    const { log, deleteTopic } = await openWithAdmin();
    const topic = `test.${randomUUID()}`;
    const ensure = () => log.ensureTopics([{ name: topic, partitions: 2, retention: 3_600_000 }]);
    const publish = (values: readonly string[]) =>
      log.publish(
        topic,
        values.map((value) => ({ key: value, value: Buffer.from(value) })),
      );
    const former = Array.from({ length: 20 }, (_, n) => `former ${n}`);
    const later = Array.from({ length: 60 }, (_, n) => `later ${n}`);
    await ensure();
    await publish(former);
    const received = new Set<string>();
    const { promise: handled, resolve: finish } = Promise.withResolvers<void>();
    log.consume({
      topic,
      group: `test.${randomUUID()}`,
      async handle(records) {
        for (const { value } of records) received.add(String(value));
        await handled;
      },
    });
    await expect.poll(() => received.size).toBe(former.length);
    // The group has not committed these records yet, and commits their offsets in the new topic.
    await deleteTopic(topic);
    await ensure();
    await vi.waitFor(() => publish(later), { timeout: 20_000 });
    finish();
    await expect.poll(() => [...received].sort(), { timeout: 60_000 }).toEqual([...former, ...later].sort());
  });

  test.skipIf(broker === undefined)(
    'publishing fails while a broker does not respond, and succeeds when it is back',
    async () => {
      const log = open();
      const topic = 'test.paused';
      await log.ensureTopics([{ name: topic, partitions: 2, retention: 3_600_000 }]);
      await log.publish(topic, [{ key: 'k', value: Buffer.from('before') }]);
      broker?.pause();
      // Its threads stop one after the other.
      await sleep(500);
      try {
        await expect(log.publish(topic, [{ key: 'k', value: Buffer.from('lost?') }])).rejects.toThrow();
      } finally {
        broker?.resume();
      }
      await vi.waitFor(() => log.publish(topic, [{ key: 'k', value: Buffer.from('after') }]), { timeout: 20_000 });
      const values: string[] = [];
      log.follow({
        topic,
        from: new Map(),
        handle: (records) => void values.push(...records.map(({ value }) => String(value))),
      });
      await expect.poll(() => values.at(-1)).toBe('after');
      expect(values[0]).toBe('before');
      await log.close();
    },
    60_000,
  );
});

test('a log whose brokers are unavailable can be opened, rejects publishing, and can be closed', async () => {
  const log = openKafkaLog({ brokers: ['127.0.0.1:9'], clientId: 'signpost-test', logger });
  const errors: unknown[] = [];
  log.consume({ topic: 't', group: 'g', handle: async () => undefined, onError: (error) => errors.push(error) });
  await expect(log.publish('t', [{ key: 'k', value: null }])).rejects.toThrow('ECONNREFUSED');
  await expect.poll(() => errors.length).toBeGreaterThan(0);
  await log.close();
});

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import kafkajs from 'kafkajs';
import pg from 'pg';
import { pino } from 'pino';
import { describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import { encodeId, newUuid } from '../../../common/contract/ids.ts';
import { openKafkaLog } from '../../../common/log/kafka.ts';
import { openPostgresLog } from '../../../common/log/postgres.ts';
import { ROUTES } from '../../../common/log/topics.ts';
import { Answer, RouteSchema } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import { freshDatabase } from '../../../test/harness/database.ts';
import { startKafka } from '../../../test/harness/kafka.ts';
import { recordingLogger } from '../../../test/harness/recording-logger.ts';
import { followRoutes } from './follow-routes.ts';
import { openRouteTable } from './route-table.ts';

const EVENTUALLY = { interval: 50 };
const logger = pino({ level: 'silent' });
const ours = inject('kafkaBrokers') !== null && !process.env.KAFKA_BROKERS;

/** Puts routes into one partition, whatever their codes. */
const inOnePartition = (routes: readonly (readonly [shortCode: string, version: number])[]) =>
  routes.map(([shortCode, version]) => {
    const [codeId, accountId] = [encodeId('qr', newUuid()), encodeId('acct', newUuid())];
    const value = { shortCode, codeId, accountId, answer: Answer.REDIRECT, targetUrl: 'https://example.com/' };
    const route = create(RouteSchema, { version: BigInt(version), entry: { case: 'code', value } });
    return { key: 'code:aaaaaaa', value: toBinary(RouteSchema, route) };
  });

describe.skipIf(!ours)(
  'a topic of routes that was deleted and created again, and is longer than the previous one',
  () => {
    test.each(['while it is followed', 'while no gateway follows it'])(
      'is read from its beginning: %s',
      async (when) => {
        const kafka = await startKafka();
        onTestFinished(() => kafka.stop());
        const log = openKafkaLog({ brokers: [kafka.brokers], clientId: 'test', logger });
        const folder = mkdtempSync(join(tmpdir(), 'signpost-follow-'));
        const table = openRouteTable(folder, logger);
        onTestFinished(async () => {
          await log.close();
          table.close();
          rmSync(folder, { recursive: true });
        });
        await log.ensureTopics([ROUTES]);
        await log.publish(ROUTES.name, inOnePartition([1, 2, 3].map((version) => ['aaaaaaa', version])));
        let follower = followRoutes({ log, table, logger });
        onTestFinished(() => follower.stop());
        await expect.poll(() => [...table.positions().values()], EVENTUALLY).toContain(3n);

        const followed = when === 'while it is followed';
        if (!followed) await follower.stop();
        const admin = new kafkajs.Kafka({ brokers: [kafka.brokers], logLevel: kafkajs.logLevel.NOTHING }).admin();
        await admin.connect();
        await admin.deleteTopics({ topics: [ROUTES.name] });
        await admin.disconnect();
        await log.ensureTopics([ROUTES]);
        const again = inOnePartition([['bbbbbbb', 1], ...[4, 5, 6, 7].map((version) => ['aaaaaaa', version] as const)]);
        await expect
          .poll(() => log.publish(ROUTES.name, again).then(() => 'published', String), EVENTUALLY)
          .toBe('published');
        if (!followed) follower = followRoutes({ log, table, logger });

        await expect.poll(() => table.code('bbbbbbb'), EVENTUALLY).toBeDefined();
        await expect.poll(() => [...table.positions().values()], EVENTUALLY).toContain(5n);
      },
      90_000,
    );
  },
);

test.each([
  ['a new topic of routes that can’t be noted', 'beginTopic'],
  ['a route that can’t be written', 'advance'],
] as const)('%s because the disk is full is followed once there is room, and logged once', async (_, method) => {
  const { lines, logger: recording } = recordingLogger();
  const folder = mkdtempSync(join(tmpdir(), 'signpost-follow-'));
  const table = openRouteTable(folder, logger);
  const log = openPostgresLog({ url: (await freshDatabase()).url, clientId: 'test', logger });
  onTestFinished(async () => {
    await log.close();
    await table.close();
    rmSync(folder, { recursive: true });
  });
  await log.ensureTopics([ROUTES]);
  await log.publish(ROUTES.name, inOnePartition([['aaaaaaa', 1]]));
  let attempts = 0;
  async function failTwice(): Promise<void> {
    if (attempts++ < 2) throw new Error('ENOSPC');
  }
  const full = {
    ...table,
    [method]: (...values: [never, never]) => failTwice().then(() => table[method](...values)),
  };
  const follower = followRoutes({ log, table: full, logger: recording });
  onTestFinished(() => follower.stop());
  await expect.poll(() => table.code('aaaaaaa'), EVENTUALLY).toBeDefined();
  expect(lines.map((line) => JSON.parse(line)).filter(({ level }) => level > 30)).toMatchObject([
    { level: 50, msg: 'the topic of routes can’t be followed; trying again', err: { message: 'ENOSPC' } },
  ]);
});

test('although a restore has raised the ends of partitions beyond their records, the table contains the whole topic, and later changes are measured', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'signpost-follow-'));
  const table = openRouteTable(folder, logger);
  const { url } = await freshDatabase();
  const log = openPostgresLog({ url, clientId: 'test', logger });
  const client = new pg.Client(url);
  await client.connect();
  onTestFinished(async () => {
    await client.end();
    await log.close();
    await table.close();
    rmSync(folder, { recursive: true });
  });
  await log.ensureTopics([ROUTES]);
  await log.publish(ROUTES.name, inOnePartition([['aaaaaaa', 1]]));
  await client.query('update log_partitions set next = next + 1000');
  expect(table.isComplete()).toBe(false);
  const onChange = vi.fn();
  const follower = followRoutes({ log, table, logger, onChange });
  onTestFinished(() => follower.stop());
  await expect.poll(() => follower.status().complete, EVENTUALLY).toBeDefined();
  expect(table.code('aaaaaaa')).toBeDefined();
  await expect.poll(() => table.isComplete(), EVENTUALLY).toBe(true);
  await log.publish(ROUTES.name, inOnePartition([['bbbbbbb', 1]]));
  await expect.poll(() => onChange.mock.lastCall, EVENTUALLY).toEqual([expect.any(Number)]);
});

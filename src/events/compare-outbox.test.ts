import { randomUUID } from 'node:crypto';
import { create, toBinary } from '@bufbuild/protobuf';
import { TimestampSchema, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { createClient, createRouterTransport } from '@connectrpc/connect';
import kafkajs from 'kafkajs';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, expect, inject, onTestFinished, test, vi } from 'vitest';
import { openKafkaLog } from '../../common/log/kafka.ts';
import { type Log, RecordsTooLarge } from '../../common/log/log.ts';
import { openPostgresLog } from '../../common/log/postgres.ts';
import { prefixed } from '../../common/log/prefixed.ts';
import { EVENTS, ROUTES } from '../../common/log/topics.ts';
import { EventsService } from '../../proto/gen/signpost/events/v1/events_pb.ts';
import { RouteSchema } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { compareEvents, compareRoutes } from './compare-outbox.ts';
import { eventsService } from './service.ts';

const ROWS = 30;
const ROW_BYTES = 900_000;

const { url } = await freshDatabase();
const pool = new pg.Pool({ connectionString: url, max: 2 });
const log = openPostgresLog({ url, clientId: 'test', logger: pino({ level: 'silent' }) });
afterAll(async () => {
  await log.close();
  await pool.end();
});

test('large records are compared a few at a time, each of them once', async () => {
  await log.ensureTopics([EVENTS]);
  await pool.query(
    `insert into outbox (topic, key, headers, value)
     select $1, 'key', jsonb_build_object('ce_id', number::text), convert_to(repeat('x', $2), 'UTF8')
     from generate_series(1, $3::integer) as number`,
    [EVENTS.name, ROW_BYTES, ROWS],
  );
  await pool.query('update outbox_position set last = (select max(id) from outbox)');
  const pages: string[][] = [];
  const { keptFrom } = await compareEvents({ pool, log, since: 0, signal: AbortSignal.timeout(60_000) }, (rows) => {
    pages.push(rows.map(({ headers }) => headers.ce_id ?? ''));
  });
  expect(pages.flat()).toEqual(Array.from({ length: ROWS }, (_, index) => String(index + 1)));
  expect(Math.max(...pages.map((page) => page.length))).toBeLessThanOrEqual(10);
  expect(keptFrom).toBeInstanceOf(Date);
});

test('a route is found if the log has it or a newer one of its key', async () => {
  await log.ensureTopics([ROUTES]);
  const route = (version: bigint) => Buffer.from(toBinary(RouteSchema, create(RouteSchema, { version })));
  await log.publish(ROUTES.name, [{ key: 'a', value: route(2n) }]);
  await pool.query(
    `insert into outbox (topic, key, headers, value) select $1, key, '{}', value
     from unnest($2::text[], $3::bytea[]) as route (key, value)`,
    [ROUTES.name, ['a', 'a', 'a', 'b'], [1n, 2n, 3n, 1n].map(route)],
  );
  await pool.query('update outbox_position set last = (select max(id) from outbox)');
  const found: boolean[] = [];
  await compareRoutes({ pool, log, since: 0, signal: AbortSignal.timeout(60_000) }, (rows) => {
    found.push(...rows.map((row) => row.found));
  });
  expect(found).toEqual([true, true, false, false]);
});

test('a topic is read since the oldest row that is compared', async () => {
  const { rows } = await pool.query(`select min(at) as oldest, max(at) as latest from outbox where topic = $1`, [
    EVENTS.name,
  ]);
  const { oldest, latest } = rows[0] as { oldest: Date; latest: Date };
  const readSince = vi.spyOn(log, 'since');
  onTestFinished(() => readSince.mockRestore());
  const signal = AbortSignal.timeout(60_000);
  for (const since of [0, latest.getTime() + 1]) await compareEvents({ pool, log, since, signal }, () => undefined);
  expect(readSince.mock.calls).toEqual([[EVENTS.name, oldest.getTime() - 300_000]]);
});

const clientOf = (of: Log) =>
  createClient(
    EventsService,
    createRouterTransport(({ service }) =>
      service(EventsService, eventsService({ pool, log: of, republishRoutes: async () => 0 })),
    ),
  );

test('an event that its topic does not take is named', async () => {
  const full: Log = { ...log, publish: () => Promise.reject(new RecordsTooLarge('too large', 0)) };
  await expect(clientOf(full).republishEvents({ all: true })).rejects.toThrow(
    'An event is too large for signpost.events.v1: raise its max.message.bytes.',
  );
});

const brokers = inject('kafkaBrokers');

test.skipIf(brokers === null)('events that their topic takes only a few at a time are republished', async () => {
  const kafkaBrokers = (brokers ?? '').split(',');
  const prefix = `t${randomUUID()}.`;
  const logger = pino({ level: 'silent' });
  const kafka = prefixed(openKafkaLog({ brokers: kafkaBrokers, clientId: 'test', logger }), prefix);
  const admin = new kafkajs.Kafka({ brokers: kafkaBrokers, logLevel: kafkajs.logLevel.NOTHING }).admin();
  onTestFinished(async () => void (await Promise.all([kafka.close(), admin.disconnect()])));
  await admin.connect();
  const names = [EVENTS, ROUTES].map(({ name }) => name.replace('signpost.', prefix));
  const configEntries = [{ name: 'max.message.bytes', value: '100000' }];
  await admin.createTopics({ topics: names.map((topic) => ({ topic, numPartitions: 2, configEntries })) });
  const { rows } = await pool.query<{ now: Date }>('select clock_timestamp() as now');
  await pool.query(
    `insert into outbox (topic, key, headers, value)
     select $1, number::text, jsonb_build_object('ce_id', number::text), convert_to(repeat('x', 9000), 'UTF8')
     from generate_series(1, 100) as number`,
    [EVENTS.name],
  );
  await pool.query('update outbox_position set last = (select max(id) from outbox)');
  const since = timestampFromDate(rows[0]?.now ?? new Date());
  expect(await clientOf(kafka).republishEvents({ since, all: true })).toMatchObject({ events: 100n });
  // Those of one partition may be published twice, if the other one refused them together.
  expect(await clientOf(kafka).auditEvents({ since })).toMatchObject({ events: { published: 100n, missing: 0n } });
});

test('a time that no date can express is rejected', async () => {
  const client = clientOf(log);
  const since = create(TimestampSchema, { seconds: 2n ** 62n });
  for (const call of [client.auditEvents({ since }), client.republishEvents({ since })]) {
    await expect(call).rejects.toThrow('since: must be in the years 1 to 9999.');
  }
});

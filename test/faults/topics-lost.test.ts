import kafkajs, { type Admin } from 'kafkajs';
import pg from 'pg';
import { pino } from 'pino';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { openKafkaLog } from '../../common/log/kafka.ts';
import type { Log, LogRecord } from '../../common/log/log.ts';
import { readTopic } from '../../common/log/read-topic.ts';
import { EVENTS, ROUTES, TOPICS } from '../../common/log/topics.ts';
import { EventsService } from '../../proto/gen/signpost/events/v1/events_pb.ts';
import { internal } from '../contract/internal.ts';
import { afterFile } from '../harness/after-file.ts';
import { startKafka } from '../harness/kafka.ts';
import { type Signpost, startSignpost } from '../harness/processes.ts';
import { counted } from './visitors.ts';

const EVENTUALLY = { timeout: 60_000, interval: 100 };
const CODES = 20;
// Topics of a broker that this run did not start must not be deleted.
const isOwnBroker = inject('kafkaBrokers') !== null && !process.env.KAFKA_BROKERS;

let signpost: Signpost;
let admin: Admin;
let log: Log;
let pool: pg.Pool;
let authorization: string;

beforeAll(async () => {
  if (!isOwnBroker) return;
  const kafka = await startKafka();
  afterFile(() => kafka.stop());
  signpost = await startSignpost({
    kafkaBrokers: kafka.brokers,
    cores: 2,
    gateways: 2,
    roles: ['rpc', 'relay,recorder,worker'],
  });
  admin = new kafkajs.Kafka({ brokers: [kafka.brokers], logLevel: kafkajs.logLevel.NOTHING }).admin();
  await admin.connect();
  log = openKafkaLog({ brokers: [kafka.brokers], clientId: 'signpost-test', logger: pino({ level: 'silent' }) });
  pool = new pg.Pool({ connectionString: signpost.databaseUrl });
  afterFile(async () => void (await Promise.all([admin.disconnect(), log.close(), pool.end()])));
  authorization = `Bearer ${(await signpost.createAccount()).apiKey}`;
});

async function call(method: string, path: string, json: unknown): Promise<CodeJson> {
  const body = JSON.stringify(json);
  const answer = await fetch(`${signpost.url}/api/v1${path}`, { method, headers: { authorization }, body });
  expect(answer.ok).toBe(true);
  return ((await answer.json()) as { data: CodeJson }).data;
}

const create = (n: number) => call('POST', '/qr-codes', { target_url: `https://example.com/${n}` });

/** The target that a gateway redirects to; the scan is counted. */
async function scan(gateway: number, { short_code }: CodeJson): Promise<string | null> {
  const answer = await fetch(`${signpost.gateways[gateway]?.url}/r/${short_code}`, { redirect: 'manual' });
  return answer.headers.get('location');
}

async function allPublished(): Promise<void> {
  const waiting = async () => (await pool.query('select from outbox_waiting limit 1')).rowCount;
  await expect.poll(waiting, EVENTUALLY).toBe(0);
}

async function recordsOf(topic: string): Promise<LogRecord[]> {
  const records: LogRecord[] = [];
  const [from, ends] = [new Map(), await log.ends(topic)];
  const { signal } = new AbortController();
  await readTopic(log, { topic, from, ends, signal }, async (batch) => void records.push(...batch));
  return records;
}

async function setPolicy(value: string): Promise<void> {
  const configEntries = [{ name: 'cleanup.policy', value }];
  const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: ROUTES.name, configEntries }];
  await admin.alterConfigs({ validateOnly: false, resources });
}

const audit = async () => {
  const { events, routes } = await internal(signpost, EventsService).auditEvents({});
  const figures = (of: typeof events) => [of?.published, of?.found, of?.missing].map(Number);
  return { events: figures(events), routes: figures(routes) };
};

describe.skipIf(!isOwnBroker)('topics that are deleted while everything runs', () => {
  test('are created again with all routes; changes and scans continue; lost events are detected and republished', async () => {
    const codes = await Promise.all(Array.from({ length: CODES }, (_, n) => create(n)));
    for (const code of codes.slice(0, 5)) await call('PATCH', `/qr-codes/${code.id}`, { name: 'renamed' });
    await allPublished();
    const [first] = codes as [CodeJson];
    for (const code of codes) expect(await scan(1, code)).toBe(code.target_url);
    await expect.poll(async () => (await counted(signpost.databaseUrl, first)).counter, EVENTUALLY).toBe(1);
    const events = CODES + 5;
    expect(await audit()).toEqual({ events: [events, events, 0], routes: [events, events, 0] });
    const before = await recordsOf(EVENTS.name);

    await admin.deleteTopics({ topics: TOPICS.map(({ name }) => name) });
    const later = await create(CODES);
    await call('PATCH', `/qr-codes/${first.id}`, { target_url: 'https://example.com/moved' });
    // The other gateway reads it from the new topic, although its positions in the old one were higher.
    await expect.poll(() => scan(1, first), EVENTUALLY).toBe('https://example.com/moved');
    await allPublished();
    const routed = async () => new Set((await recordsOf(ROUTES.name)).map(({ key }) => key));
    const keys = [...codes, later].map(({ short_code }) => `code:${short_code}`);
    await expect.poll(routed, EVENTUALLY).toEqual(new Set(keys));
    const lines = ((await signpost.cores[1]?.log()) ?? '').split('\n').filter(Boolean);
    const logged = lines
      .map((line) => JSON.parse(line))
      .find(({ msg }) => msg === 'topics are missing and are created');
    expect(logged).toMatchObject({ level: 40, topics: TOPICS.map(({ name }) => name) });
    expect(await scan(1, later)).toBe(later.target_url);
    await expect.poll(async () => (await counted(signpost.databaseUrl, later)).counter, EVENTUALLY).toBe(1);

    // Republished routes have their own rows.
    const lost = await audit();
    expect(lost.events).toEqual([events + 2, 2, events]);
    expect(lost.routes[2]).toBe(0);
    const again = await internal(signpost, EventsService).republishEvents({});
    expect([Number(again.events), Number(again.routes)]).toEqual([events, 0]);
    expect((await audit()).events).toEqual([events + 2, events + 2, 0]);
    const after = await recordsOf(EVENTS.name);
    const republished = (of: LogRecord[], key: string) =>
      new Map(of.filter((record) => record.key === key).map(({ headers, value }) => [headers.ce_id, String(value)]));
    for (const code of codes.slice(1)) expect(republished(after, code.id)).toEqual(republished(before, code.id));
    // Delivery is at least once: an event may be on the topic twice.
    expect(new Set(after.map(({ headers }) => headers.ce_id)).size).toBe(events + 2);

    // First all events, then only recent ones.
    const all = await internal(signpost, EventsService).republishEvents({ all: true });
    expect(Number(all.events)).toBe(events + 2);
    const since = { seconds: BigInt(Math.floor(Date.now() / 1_000) + 3_600), nanos: 0 };
    const none = await internal(signpost, EventsService).republishEvents({ all: true, since });
    expect([Number(none.events), Number(none.routes)]).toEqual([0, 0]);
  }, 240_000);

  test('routes missing in the topic are published in their current state', async () => {
    const code = await create(100);
    await allPublished();
    await call('PATCH', `/qr-codes/${code.id}`, { target_url: 'https://example.com/now' });
    await allPublished();
    // As if a broker had lost its disk: the records are gone, and the topic stays.
    const partitions = (await admin.fetchTopicOffsets(ROUTES.name)).map(({ partition, high }) => ({
      partition,
      offset: high,
    }));
    // Kafka does not delete records of a compacted topic on request.
    await setPolicy('delete');
    await admin.deleteTopicRecords({ topic: ROUTES.name, partitions });
    await setPolicy('compact');
    expect((await audit()).routes[2]).toBeGreaterThan(0);
    const again = await internal(signpost, EventsService).republishEvents({});
    expect(Number(again.routes)).toBeGreaterThan(0);
    await allPublished();
    expect((await audit()).routes[2]).toBe(0);
    const newest = (await recordsOf(ROUTES.name)).findLast(({ key }) => key === `code:${code.short_code}`);
    expect(String(newest?.value)).toContain('https://example.com/now');
  });
});

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, expect, onTestFinished, test, vi } from 'vitest';
import { startPostgres } from '../../local/postgres.ts';
import { openDatabase } from '../../src/db/database.ts';
import { entities } from '../../src/entities.ts';
import type { LogRecord } from './log.ts';
import { conformance } from './log-suite.fixture.ts';
import { openPostgresLog } from './postgres.ts';
import { EVENTS, SCANS } from './topics.ts';

// A separate server, because it is restarted.
const folder = await mkdtemp(join(tmpdir(), 'signpost-log-'));
const settings = { fsync: 'off' };
let postgres = await startPostgres({ folder, settings });
afterAll(async () => {
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});
const database = await openDatabase(postgres.url, 2, entities);
await database.migrate();
await database.close();

const logger = pino({ level: 'silent' });

conformance('Postgres', () => ({
  open: () => openPostgresLog({ url: postgres.url, clientId: 'signpost-test', logger }),
  options: { kafkaBrokers: [], databaseUrl: postgres.url },
  async restart() {
    await postgres.stop();
    postgres = await startPostgres({ folder, settings });
  },
}));

test('records of several partitions are read by a few statements, and each publication is looked for once', async () => {
  const log = openPostgresLog({ url: postgres.url, clientId: 'signpost-test', logger });
  onTestFinished(() => log.close());
  await log.ensureTopics([{ name: 'few', partitions: 12, retention: 3_600_000 }]);
  const handled: string[] = [];
  const handle = async (records: readonly LogRecord[]) => {
    await nextTurn();
    handled.push(...records.map(({ key }) => key));
  };
  log.follow({ topic: 'few', from: new Map(), handle, partitionsAtOnce: 12 });
  await log.publish('few', [{ key: 'first', value: null }]);
  await expect.poll(() => handled).toEqual(['first']);
  const query = vi.spyOn(pg.Client.prototype, 'query');
  onTestFinished(() => query.mockRestore());
  const keys = Array.from({ length: 100 }, (_, n) => `key ${n}`);
  const records = keys.map((key) => ({ key, value: Buffer.from(key) }));
  await log.publish('few', records);
  await expect.poll(() => handled.length).toBe(101);
  expect(new Set(handled)).toEqual(new Set(['first', ...keys]));
  const names = query.mock.calls.map(([statement]) => (statement as unknown as { name: string }).name);
  expect(names.filter((name) => name === 'log_records_from')).toHaveLength(1);
  expect(names.filter((name) => name === 'log_reader_ends')).toHaveLength(1);
});

test('large records are read in parts of some megabytes', async () => {
  const log = openPostgresLog({ url: postgres.url, clientId: 'signpost-test', logger });
  onTestFinished(() => log.close());
  await log.ensureTopics([{ name: 'large', partitions: 2, retention: 3_600_000 }]);
  const records = Array.from({ length: 16 }, (_, n) => ({ key: `key ${n}`, value: Buffer.alloc(2 ** 20, n) }));
  await log.publish('large', records);
  const handled: (readonly LogRecord[])[] = [];
  log.follow({ topic: 'large', from: new Map(), handle: (some) => void handled.push(some) });
  await expect.poll(() => handled.flat().length).toBe(16);
  expect(Object.fromEntries(handled.flat().map(({ key, value }) => [key, value?.[0]]))).toEqual(
    Object.fromEntries(records.map(({ key, value }) => [key, value[0]])),
  );
  expect(Math.max(...handled.map(({ length }) => length))).toBeLessThanOrEqual(5);
});

test('a group learns where reading continues after retention has deleted records that it had not read', async () => {
  const log = openPostgresLog({ url: postgres.url, clientId: 'signpost-test', logger });
  onTestFinished(() => log.close());
  const topic = 'expired';
  await log.ensureTopics([{ name: topic, partitions: 1, retention: 3_600_000 }]);
  const publish = (keys: readonly string[]) =>
    log.publish(
      topic,
      keys.map((key) => ({ key, value: null })),
    );
  const handled: string[] = [];
  const join = () =>
    log.consume({
      topic,
      group: 'g',
      handle: async (records, from) => void handled.push(`${from}: ${records.map(({ key }) => key).join(' ')}`),
    });
  const first = join();
  await publish(['a', 'b']);
  await expect.poll(() => handled).toEqual(['0: a b']);
  await first.stop();
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  onTestFinished(() => client.end());
  await publish(['c', 'd', 'e']);
  await client.query(`delete from log_records where topic = $1 and "offset" < 4`, [topic]);
  const second = join();
  await expect.poll(() => handled.slice(1)).toEqual(['4: e']);
  await second.stop();
  await publish(['f']);
  await client.query('delete from log_records where topic = $1', [topic]);
  const third = join();
  onTestFinished(() => third.stop());
  const committed = async () => (await client.query(`select "offset" from log_groups where topic = $1`, [topic])).rows;
  await expect.poll(committed).toEqual([{ offset: '6' }]);
  await publish(['g']);
  await expect.poll(() => handled.slice(2)).toEqual(['6: g']);
});

/** A log, and another client of its Postgres. */
async function openBoth() {
  const log = openPostgresLog({ url: postgres.url, clientId: 'signpost-test', logger });
  const client = new pg.Client(postgres.url);
  await client.connect();
  onTestFinished(async () => {
    await client.end();
    await log.close();
  });
  return { log, client };
}

test('a record is delivered whatever JSON another program has stored as its headers', async () => {
  const { log, client } = await openBoth();
  await log.ensureTopics([{ name: 'any-headers', partitions: 1, retention: 3_600_000 }]);
  const headers = ['null', '"text"', '7', '["a"]', '{"a": "b", "c": null, "d": {}}'];
  await client.query(`select log_append('any-headers', false, $1, $2, $3, $4)`, [
    headers.map(() => 0),
    headers,
    headers,
    headers.map(() => null),
  ]);
  const read: LogRecord[] = [];
  log.follow({ topic: 'any-headers', from: new Map(), handle: (records) => void read.push(...records) });
  await expect.poll(() => read.length).toBe(headers.length);
  expect(read.map((record) => record.headers)).toEqual([{}, {}, {}, { 0: 'a' }, { a: 'b', c: '', d: '' }]);
});

test('the first record since a time is found without reading those that follow it', async () => {
  const { log, client } = await openBoth();
  await log.ensureTopics([{ name: 'many', partitions: 2, retention: 3_600_000 }]);
  await log.publish(
    'many',
    Array.from({ length: 1_000 }, (_, n) => ({ key: `key ${n}`, value: null })),
  );
  const query = vi.spyOn(pg.Client.prototype, 'query');
  expect(await log.since('many', 0)).toEqual(new Map([0, 1].map((partition) => [partition, 0n])));
  const calls = query.mock.calls.map(
    ([given]) => given as unknown as { name: string; text: string; values: unknown[] },
  );
  query.mockRestore();
  const { text = '', values = [] } = calls.find(({ name }) => name === 'log_since') ?? {};
  const { rows } = await client.query<Record<'QUERY PLAN', string>>(
    `explain (analyze, costs off, timing off) ${text}`,
    values,
  );
  const read = rows.map((row) => row['QUERY PLAN']).filter((line) => line.includes('log_records'));
  expect(read).toEqual([expect.stringContaining('(actual rows=1.00 loops=2)')]);
});

test('a log whose Postgres is unavailable can be opened, rejects publishing, and can be closed', async () => {
  const log = openPostgresLog({ url: 'postgres://nobody@127.0.0.1:9/none', clientId: 'signpost-test', logger });
  const errors: unknown[] = [];
  log.consume({ topic: 't', group: 'g', handle: async () => undefined, onError: (error) => errors.push(error) });
  await expect(log.publish('t', [{ key: 'k', value: null }])).rejects.toThrow('ECONNREFUSED');
  await expect.poll(() => errors.length).toBeGreaterThan(0);
  await log.close();
});

test.each([SCANS, EVENTS])(
  'publishing to $name is rejected while it is missing, although it existed before',
  async (topic) => {
    const log = openPostgresLog({ url: postgres.url, clientId: 'signpost-test', logger });
    const client = new pg.Client(postgres.url);
    await client.connect();
    onTestFinished(async () => {
      await client.end();
      await log.close();
    });
    await log.ensureTopics([topic]);
    await log.publish(topic.name, [{ key: 'first', value: null }]);
    await client.query('delete from log_topics where name = $1', [topic.name]);
    await expect(log.publish(topic.name, [{ key: 'second', value: null }])).rejects.toThrow('does not exist');
    await log.ensureTopics([topic]);
    await log.publish(topic.name, [{ key: 'third', value: null }]);
    expect(Math.max(...[...(await log.ends(topic.name)).values()].map(Number))).toBe(1);
  },
);

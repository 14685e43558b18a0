import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { pino } from 'pino';
import { type TestContext, test } from 'vitest';
import { freshDatabase } from '../../test/harness/database.ts';
import { recordingLogger } from '../../test/harness/recording-logger.ts';
import type { Topic } from './log.ts';
import { openPostgresLog } from './postgres.ts';
import { startRetention } from './postgres-retention.ts';

const { url } = await freshDatabase();

async function newTopic({ onTestFinished }: TestContext, retention: Topic['retention']) {
  const log = openPostgresLog({ url, clientId: 'signpost-test', logger: pino({ level: 'silent' }) });
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(async () => {
    await log.close();
    await client.end();
  });
  const topic = `test.${randomUUID()}`;
  await log.ensureTopics([{ name: topic, partitions: 2, retention }]);
  const publish = (pairs: readonly [key: string, value: string | null][]) =>
    log.publish(
      topic,
      pairs.map(([key, value]) => ({ key, value: value === null ? null : Buffer.from(value) })),
    );
  const query = async (sql: string) => (await client.query(sql, sql.includes('$1') ? [topic] : [])).rows;
  const kept = async () =>
    (await query('select value from log_records where topic = $1 order by key, "offset"')).map(
      ({ value }) => value && String(value),
    );
  return { publish, query, kept };
}

async function indexReads(query: (sql: string) => Promise<{ reads: string }[]>): Promise<number> {
  const [row] = await query(
    `select sum(idx_tup_read) as reads from pg_stat_user_indexes where relname = 'log_records' and $1::text is not null`,
  );
  return Number(row?.reads);
}

// Alone, because it counts what all connections read. The others wait for the same runs.
test('compacting new records does not read all old ones, even before Postgres has statistics', async (context) => {
  const { expect } = context;
  const { publish, query, kept } = await newTopic(context, 'compact');
  await query('alter table log_records set (autovacuum_enabled = off)');
  const records = [...Array(4_000).keys()].map((nth): [string, string] => [`key ${nth}`, 'value']);
  await publish(records);
  await publish([['key 1', 'newer']]);
  const compacted = 'select every(clean = next) as compacted from log_partitions where topic = $1';
  await expect.poll(() => query(compacted)).toEqual([{ compacted: true }]);
  // Backends report what they have read once they are idle.
  await expect.poll(() => indexReads(query)).toBeGreaterThan(0);
  expect(await indexReads(query)).toBeLessThan(4 * records.length);
  expect((await kept()).length).toBe(records.length);
});

test.concurrent('a compacted topic keeps only the newest record of each key', async (context) => {
  const { expect } = context;
  const { publish, kept } = await newTopic(context, 'compact');
  for (let version = 0; version < 5; version++) {
    await publish([
      ['a', `a${version}`],
      ['b', `b${version}`],
      ['a', `a${version}+`],
    ]);
  }
  await publish([['c', 'c']]);
  await expect.poll(kept).toEqual(['a4+', 'b4', 'c']);
  await publish([['a', 'a5']]);
  await expect.poll(kept).toEqual(['a5', 'b4', 'c']);
});

test.concurrent('positions that are raised while records are compacted stay raised', async (context) => {
  const { expect } = context;
  const { publish, query, kept } = await newTopic(context, 'compact');
  const turn = `(hashtext('signpost_log'), 0)`;
  await query(`select pg_advisory_lock${turn}`);
  await publish([
    ['a', 'older'],
    ['a', 'newer'],
  ]);
  // As src/restored.ts does.
  await query('begin');
  await query(`update log_partitions set (next, clean) = (1e15, 1e15) where topic = $1`);
  await query(`select pg_advisory_unlock${turn}`);
  const waiting =
    'select count(*)::int as waiting from pg_locks where not granted and transactionid = pg_current_xact_id()::xid';
  await expect.poll(() => query(waiting)).toEqual([{ waiting: 1 }]);
  await query('commit');
  await expect.poll(kept).toEqual(['newer']);
  const raised = 'select every(clean = next) as raised from log_partitions where topic = $1';
  expect(await query(raised)).toEqual([{ raised: true }]);
});

test.concurrent('a tombstone is deleted after a day, and no other record of a compacted topic because of its age', async (context) => {
  const { expect } = context;
  const { publish, query, kept } = await newTopic(context, 'compact');
  await publish([
    ['a', 'a'],
    ['old', null],
  ]);
  await query(`update log_records set at = at - interval '25 hours' where topic = $1`);
  await publish([['young', null]]);
  await expect.poll(kept).toEqual(['a', null]);
});

test.concurrent('records older than the retention are deleted, and no younger ones', async (context) => {
  const { expect } = context;
  const { publish, query, kept } = await newTopic(context, 3_600_000);
  await publish([...Array(6_000).keys()].map((nth) => [`${nth}`, 'old']));
  await query(`update log_records set at = at - interval '61 minutes' where topic = $1`);
  await publish([['a', 'young']]);
  await expect.poll(async () => new Set(await kept())).toEqual(new Set(['young']));
});

test.concurrent('a retention that fails every ten seconds says so once a minute', async ({ expect }) => {
  const { lines, logger } = recordingLogger();
  let attempts = 0;
  const query = async () => {
    attempts++;
    throw new Error('away');
  };
  const retention = startRetention({ query } as unknown as pg.Pool, logger);
  await expect.poll(() => attempts).toBe(2);
  await retention.stop();
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ level: 40, err: { message: 'away' } }]);
});

import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { pino } from 'pino';
import { expect, onTestFinished, test, vi } from 'vitest';
import { freshDatabase } from '../../../test/harness/database.ts';
import { conformance } from './conformance.ts';
import { openPostgresLog } from './postgres.ts';

const { url } = await freshDatabase();
const open = () => openPostgresLog({ url, clientId: 'signpost-test', logger: pino({ level: 'silent' }) });

conformance('Postgres', () => ({ open }));

test('every connection cut off while records are published and read loses none', async () => {
  const log = open();
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  onTestFinished(async () => {
    await admin.end();
    await log.close();
  });
  const topic = `test.${randomUUID()}`;
  await log.ensureTopics([{ name: topic, partitions: 2, retention: 3_600_000 }]);
  const seen = new Set<string>();
  log.consume({
    topic,
    group: randomUUID(),
    handle: async (records) => {
      for (const { value } of records) seen.add(Buffer.from(value ?? []).toString());
    },
  });
  for (let nth = 0; nth < 40; nth++) {
    if (nth % 10 === 5) {
      await admin.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid()`,
      );
    }
    const records = [{ key: String(nth), value: Buffer.from(String(nth)) }];
    // What a publisher does: again, until the log says that it has it.
    await vi.waitFor(() => log.publish(topic, records), { timeout: 10_000, interval: 50 });
  }
  await vi.waitFor(() => expect(seen.size).toBe(40), { timeout: 20_000, interval: 50 });
});

test('the newest record of a key is the only one left on a compacted topic', async () => {
  const log = open();
  const topic = `test.${randomUUID()}`;
  await log.ensureTopics([{ name: topic, partitions: 3, retention: 'compact' }]);
  for (let version = 0; version < 5; version++) {
    await log.publish(topic, [
      { key: 'a', value: Buffer.from(`${version}`) },
      { key: 'a', value: Buffer.from(`${version}+`) },
    ]);
  }
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query('select value from log_records where topic = $1', [topic]);
  await client.end();
  await log.close();
  expect(rows.map(({ value }) => String(value))).toEqual(['4+']);
});

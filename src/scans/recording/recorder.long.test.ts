import { fork } from 'node:child_process';
import { once } from 'node:events';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { MAY_BE_IDLE } from '../../../common/postgres/connection-options.ts';
import { transaction } from '../../../common/postgres/sql.ts';
import { isUnavailable } from '../../../common/postgres/unavailable.ts';
import { DAY_MS } from '../../../common/runtime/durations.ts';
import { freshDatabase } from '../../../test/harness/database.ts';
import { startTcpProxy } from '../../../test/harness/tcp-proxy.ts';
import { type Database, openDatabase } from '../../db/database.ts';
import { LOCKS } from '../../db/locks.ts';
import { entities } from '../../entities.ts';
import { auditScans } from '../ledger/audit-scans.ts';
import { scanCounts } from '../reports/scan-counts.ts';
import { inMemoryLog, newScannedCode, pollHandler, type ScannedCode, scanRecord } from '../scans.fixture.ts';

let url: string;
let database: Database;
beforeAll(async () => {
  ({ url } = await freshDatabase());
  database = await openDatabase(url, 8, entities);
});
afterAll(() => database.close());

async function expectCounted({ accountId, codeId }: ScannedCode, count: number): Promise<void> {
  expect((await scanCounts(database.pool, accountId, [codeId])).get(codeId)).toBe(count);
  const audit = await auditScans(database, { from: Date.UTC(2020, 0, 1), to: Date.now() + DAY_MS });
  expect(audit).toMatchObject({ counted: audit.rows, differences: [] });
}

test('a recorder killed in the middle of its work loses no scan and counts none twice', async () => {
  const scanned = newScannedCode();
  const polls = Array.from({ length: 10 }, () => Array.from({ length: 300 }, () => scanRecord(scanned)));
  const values = polls.map((poll) => poll.map(({ value }) => Buffer.from(value ?? []).toString('base64')));
  const killed = new Set<number>();
  for (let next = 0; next < polls.length; ) {
    const child = fork(new URL('./recorder-process.fixture.ts', import.meta.url), [url], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    child.send(values.slice(next));
    // Each child is killed at a different moment of its second poll, which is then delivered again as by the log.
    const [done] = (await once(child, 'message')) as [number];
    await new Promise((resolve) => setTimeout(resolve, next * 2));
    child.kill('SIGKILL');
    await once(child, 'exit');
    killed.add(next);
    next += done;
  }
  expect(killed.size).toBe(10);
  await expectCounted(scanned, 3_000);
});

test('a recorder whose Postgres vanished while it creates a partition times out and then records the poll', async () => {
  const postgres = await startTcpProxy(url);
  const behindProxy = await openDatabase(postgres.url, 4, entities);
  onTestFinished(() => behindProxy.close());
  const recorder = pollHandler({ log: inMemoryLog(), database: behindProxy, logger: pino({ level: 'silent' }) });
  const scanned = newScannedCode();
  const records = [scanRecord(scanned, { at: Date.UTC(2021, 4, 5) })];
  await transaction(database.pool, async (tx) => {
    await tx.query(MAY_BE_IDLE);
    await tx.query('select pg_advisory_xact_lock($1)', [LOCKS.scanMonths]);
    const recorded = recorder(records);
    const waiting = `select from pg_stat_activity where datname = current_database() and wait_event = 'advisory'`;
    await expect.poll(async () => (await database.pool.query(waiting)).rowCount).toBe(1);
    postgres.vanish();
    await expect(recorded).rejects.toSatisfy(isUnavailable);
  });
  await recorder(records);
  await expectCounted(scanned, 1);
});

test('a recorder whose Postgres vanished during a poll times out and records the poll on another connection', async () => {
  const postgres = await startTcpProxy(url);
  const behindProxy = await openDatabase(postgres.url, 4, entities);
  onTestFinished(() => behindProxy.close());
  const recorder = pollHandler({
    log: inMemoryLog(),
    database: behindProxy,
    logger: pino({ level: 'silent' }),
  });
  const scanned = newScannedCode();
  const records = Array.from({ length: 10 }, () => scanRecord(scanned));
  await recorder([scanRecord(scanned)]);
  const blocker = await database.pool.connect();
  try {
    await blocker.query('begin');
    await blocker.query(MAY_BE_IDLE);
    await blocker.query('lock table scans in share mode');
    const recorded = recorder(records);
    const waiting = `select from pg_stat_activity where datname = current_database() and query like 'copy scans%'
                     and wait_event_type = 'Lock'`;
    await expect.poll(async () => (await database.pool.query(waiting)).rowCount).toBe(1);
    postgres.vanish();
    await expect(recorded).rejects.toSatisfy(isUnavailable);
  } finally {
    await blocker.query('rollback');
    blocker.release();
  }
  await recorder(records);
  await expectCounted(scanned, 11);
});

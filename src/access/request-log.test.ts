import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { newUuid } from '../../common/contract/ids.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { recordingLogger } from '../../test/harness/recording-logger.ts';
import { startTcpProxy } from '../../test/harness/tcp-proxy.ts';
import { openDatabase } from '../db/database.ts';
import { entities } from '../entities.ts';
import { deleteAccountApiRequests, KEPT_REQUESTS, type RecordedRequest, recordRequests } from './api-requests.ts';
import { openRequestLog } from './request-log.ts';

async function newAccounts(pool: Pool, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, newUuid);
  await pool.query(`insert into accounts (id, name, plan) select id, 'Test', 'business' from unnest($1::uuid[]) id`, [
    ids,
  ]);
  return ids;
}

const { url } = await freshDatabase();

async function openPool(databaseUrl = url): Promise<Pool> {
  const { pool, close } = await openDatabase(databaseUrl, 5, entities);
  onTestFinished(close);
  return pool;
}

const request = (accountId: string, requestId: string): RecordedRequest => ({
  id: newUuid(),
  account_id: accountId,
  at: new Date(),
  request_id: requestId,
  method: 'GET',
  path: '/api/v1/tags',
  status: 200,
  reason: null,
  duration_ms: 1,
});

/** Request ids by the order of the requests. */
async function listed(pool: Pool, accountId: string): Promise<string[]> {
  const { rows } = await pool.query('select request_id from api_requests where account_id = $1 order by id', [
    accountId,
  ]);
  return rows.map(({ request_id }) => request_id);
}

test('the last 1,000 requests of each account are kept, also of many at once', async () => {
  const pool = await openPool();
  const [one = '', other = ''] = await newAccounts(pool, 2);
  const numbers = Array.from({ length: 3_500 }, (_, n) => String(n));
  const last = numbers.slice(-KEPT_REQUESTS);
  await recordRequests(pool, [request(other, 'first'), ...numbers.map((n) => request(one, n))]);
  expect(await listed(pool, one)).toEqual(last);
  for (let n = 0; n < numbers.length; n += 700) {
    await recordRequests(
      pool,
      numbers.slice(n, n + 700).map((each) => request(one, `again ${each}`)),
    );
  }
  expect(await listed(pool, one)).toEqual(last.map((n) => `again ${n}`));
  expect(await listed(pool, other)).toEqual(['first']);
});

test('many cores record requests of the same accounts at once, while one of them is erased', async () => {
  const pool = await openPool();
  const accounts = await newAccounts(pool, 8);
  const [erased = '', ...others] = accounts;
  const rounds = Array.from({ length: 30 }, async (_, n) => {
    const batch = (n % 2 === 0 ? accounts : accounts.toReversed()).flatMap((id) =>
      Array.from({ length: 20 }, () => request(id, String(n))),
    );
    await recordRequests(pool, batch);
    if (n % 5 === 0) await deleteAccountApiRequests(pool, erased);
  });
  await Promise.all(rounds);
  for (const id of others) expect(await listed(pool, id)).toHaveLength(600);
  await deleteAccountApiRequests(pool, erased);
  expect(await listed(pool, erased)).toEqual([]);
});

test('overwriting requests neither grows the table nor its index', async () => {
  const pool = await openPool((await freshDatabase()).url);
  const [id = ''] = await newAccounts(pool, 1);
  const size = async () => {
    const { rows } = await pool.query<{ size: number }>(
      `select pg_table_size('api_requests')::integer + pg_indexes_size('api_requests')::integer as size`,
    );
    return rows[0]?.size ?? 0;
  };
  const write = async (times: number) => {
    for (let n = 0; n < times; n++)
      await recordRequests(
        pool,
        Array.from({ length: 10 }, () => request(id, 'x'.repeat(36))),
      );
  };
  await write(100);
  const growth = async () => {
    const before = await size();
    await write(200);
    return (await size()) - before;
  };
  // Not at once: while a snapshot is open, as that of an autovacuum, space is not reused.
  await expect.poll(growth).toBe(0);
});

const call = (accountId: string) => ({
  accountId,
  method: CodesService.method.getCode,
  header: new Headers(),
  receivedAt: performance.now(),
});

test('while Postgres is unavailable requests are dropped and counted, and later ones are recorded', async () => {
  const direct = await openPool();
  const [id = ''] = await newAccounts(direct, 1);
  const proxy = await startTcpProxy(url);
  const { lines, logger } = recordingLogger();
  const log = openRequestLog(await openPool(proxy.url), logger);
  onTestFinished(() => log.stop());
  proxy.cut();
  for (const _ of [1, 2, 3]) log.add(call(id));
  await expect.poll(() => lines.length).toBe(1);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ requests: 3, level: 40 });
  expect(await listed(direct, id)).toEqual([]);
  proxy.restore();
  log.add(call(id));
  await expect.poll(() => listed(direct, id)).toHaveLength(1);
}, 90_000);

test('no more than 10,000 requests wait', async () => {
  const pool = await openPool();
  const [id = ''] = await newAccounts(pool, 1);
  const { lines, logger } = recordingLogger();
  const log = openRequestLog(pool, logger);
  for (let n = 0; n < 10_001; n++) log.add(call(id));
  await log.stop();
  expect(lines.map((line) => JSON.parse(line).requests)).toEqual([1]);
  const { rows } = await pool.query('select recorded::integer from api_request_counts where account_id = $1', [id]);
  expect(rows).toEqual([{ recorded: 10_000 }]);
});

test('requests are recorded together within seconds, and without requests nothing is sent', async () => {
  const pool = await openPool();
  const [id = ''] = await newAccounts(pool, 1);
  let statements = 0;
  const query = (...given: Parameters<Pool['query']>) => {
    statements++;
    return pool.query(...given);
  };
  const counting = { query } as unknown as Pool;
  const log = openRequestLog(counting, recordingLogger().logger);
  for (const _ of [1, 2, 3]) log.add(call(id));
  await expect.poll(() => listed(pool, id)).toHaveLength(3);
  await sleep(1_500);
  expect(statements).toBe(1);
  await log.stop();
  expect(statements).toBe(1);
});

import pg from 'pg';
import { afterEach, describe, expect, test } from 'vitest';
import { type Account, contract, type Failure, type Page, TARGET } from '../contract/client.ts';
import { freshDatabase } from '../harness/database.ts';
import type { TcpProxy } from '../harness/open-tcp-proxy.ts';
import { startTcpProxy } from '../harness/tcp-proxy.ts';

let postgres: TcpProxy;
const api = contract(async () => {
  postgres = await startTcpProxy((await freshDatabase()).url);
  return { databaseUrl: postgres.url, env: { CORE_TIMEOUT_MS: '2000' } };
});
afterEach(() => postgres.restore());

const EVENTUALLY = { timeout: 20_000, interval: 100 };
const VANISHED = { timeout: 60_000, interval: 500 };

async function everyEndpoint(account: Account, id: string) {
  const create = JSON.stringify({ target_url: TARGET });
  const requests: [string, string, string?, Record<string, string>?][] = [
    ['GET', '/qr-codes'],
    ['POST', '/qr-codes', create],
    ['POST', '/qr-codes', create, { 'idempotency-key': 'one' }],
    ['POST', '/qr-codes', '{'],
    ['GET', `/qr-codes/${id}`],
    ['PATCH', `/qr-codes/${id}`, '{"paused":true}'],
    ['DELETE', `/qr-codes/${id}`],
    ['GET', `/qr-codes/${id}/analytics`],
    ['GET', `/qr-codes/${id}/image`],
    ['GET', '/batches'],
    ['POST', '/batches', JSON.stringify({ rows: [{ target_url: TARGET }] }), { 'idempotency-key': 'two' }],
    ['GET', '/batches/batch_01kagcpn9te5gvjxq1rmm30w4h'],
    ['GET', '/folders'],
    ['GET', '/tags'],
    ['GET', '/openapi'],
  ];
  return Promise.all(
    requests.map(async ([method, path, raw, headers = {}]) => {
      const answer = await account.call<Failure>(method, path, { ...(raw === undefined ? {} : { raw }), headers });
      return { request: `${method} ${path}`, ...answer };
    }),
  );
}

describe.each([
  ['unavailable', () => postgres.cut()],
  ['hanging', () => postgres.hang()],
])('while Postgres is %s', (_how, disrupt) => {
  test('503 with `Retry-After` from every endpoint within the deadline, never an empty list; recovers once Postgres is back', async () => {
    const account = await api.account();
    const { id } = await account.create({ folder: 'Berlin', tags: ['menu'] });
    disrupt();
    // More concurrent requests than the core has connections.
    const answers = (await Promise.all([1, 2, 3].map(() => everyEndpoint(account, id)))).flat();
    for (const { request, status, headers, body } of answers) {
      expect([request, status]).toEqual([request, 503]);
      expect(headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
      expect(headers.get('x-request-id')).toMatch(/\S/);
      expect(Object.keys(body)).toEqual(['error']);
      expect(body.error).toMatch(/try again\.$/);
      expect(body.error).not.toMatch(/postgres|sql|connect|timeout|127\.0|ECONN|pool/i);
    }
    postgres.restore();
    await expect.poll(async () => (await account.call('GET', '/openapi')).status, EVENTUALLY).toBe(200);
    const read = (await account.call<{ data: unknown[] }>('GET', '/folders')).body.data;
    expect(read).toHaveLength(1);
  });

  test('a request with an idempotency key is executed once, even if the first attempt failed', async () => {
    const account = await api.account();
    const post = () =>
      account.call('POST', '/qr-codes', { json: { target_url: TARGET }, headers: { 'idempotency-key': 'one' } });
    await account.create();
    disrupt();
    expect((await post()).status).toBe(503);
    expect((await post()).status).toBe(503);
    postgres.restore();
    await expect.poll(async () => (await post()).status, EVENTUALLY).toBe(201);
    expect((await account.call<Page>('GET', '/qr-codes')).body.total).toBe(2);
  });
});

test('the core reconnects after another machine has taken over the address of Postgres', async () => {
  const account = await api.account();
  await account.create();
  postgres.vanish();
  // More concurrent requests than the core has connections, each of which is dead.
  await Promise.all(Array.from({ length: 30 }, () => account.call('GET', '/qr-codes')));
  await expect.poll(async () => (await account.call('GET', '/qr-codes')).status, VANISHED).toBe(200);
  await account.create();
  // The relay had its own connection.
  await expect.poll(() => outboxOf(api.signpost.databaseUrl), VANISHED).toBe(0);
  // Lets the core stop soon: anything waiting on a dead connection would delay it.
  postgres.cut();
}, 120_000);

async function outboxOf(databaseUrl: string): Promise<number> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  const { rows } = await client.query<{ waiting: number }>('select count(*)::integer as waiting from outbox_waiting');
  await client.end();
  return rows[0]?.waiting ?? -1;
}

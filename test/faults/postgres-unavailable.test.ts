import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { DomainState, DomainsService } from '../../proto/gen/signpost/domains/v1/domains_pb.ts';
import { WebhooksService } from '../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { notifying } from '../../src/db/notifications.ts';
import { startReceiver } from '../../src/webhooks/receiver.fixture.ts';
import { type Account, contract, type Failure, type Page, TARGET } from '../contract/client.ts';
import { internal } from '../contract/internal.ts';
import { freshDatabase } from '../harness/database.ts';
import { type Dns, startDns } from '../harness/dns.ts';
import type { TcpProxy } from '../harness/open-tcp-proxy.ts';
import { startTcpProxy } from '../harness/tcp-proxy.ts';

let dns: Dns;
/** The address of Postgres without the proxy. */
let directUrl: string;
let postgres: TcpProxy;
const api = contract(async () => {
  dns = await startDns();
  ({ url: directUrl } = await freshDatabase());
  postgres = await startTcpProxy(directUrl);
  const env = { CORE_TIMEOUT_MS: '2000', WEBHOOKS_ALLOW_PRIVATE: 'true', DNS_RESOLVERS: dns.address };
  return { databaseUrl: postgres.url, env };
});
afterEach(() => postgres.restore());

const EVENTUALLY = { interval: 100 };
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

/**
 * Adds an endpoint to an account, and waits until its first test event has arrived; returns how to wait for another
 * one.
 */
async function addEndpoint(account: Account): Promise<() => Promise<void>> {
  const { url, received } = await startReceiver();
  const webhooks = internal(api.signpost, WebhooksService, account.id);
  const { endpoint } = await webhooks.createEndpoint({ url, events: ['qr.created'] });
  const isVerified = async () => (await webhooks.listEndpoints({})).endpoints[0]?.verifiedAt !== undefined;
  await expect.poll(isVerified, EVENTUALLY).toBe(true);
  return async () => {
    const { delivery } = await webhooks.sendTestEvent({ id: endpoint?.id ?? '' });
    await expect.poll(() => received.map(({ id }) => id), VANISHED).toContain(delivery?.eventId);
  };
}

/** Adds a domain to an account that becomes verified by its next check. */
async function addDomain(account: Account): Promise<void> {
  const domains = internal(api.signpost, DomainsService, account.id);
  const { domain } = await domains.addDomain({ hostname: 'menu.example' });
  if (!domain) throw new Error('the answer has no domain');
  const problem = async () => (await domains.listDomains({})).domains[0]?.problem;
  await expect.poll(problem, EVENTUALLY).toContain('no TXT');
  dns.set(domain.txtName, 'TXT', domain.txtValue);
}

/**
 * Makes all endpoints and domains due, and locks them until the returned function is called: meanwhile they are
 * skipped, and deliverer and checks look for due ones at least every second.
 */
async function lockDue(): Promise<() => Promise<unknown>> {
  const client = new pg.Client({ connectionString: directUrl });
  await client.connect();
  onTestFinished(() => client.end());
  const leased = 'select from webhook_endpoints where leased_until is not null';
  await expect.poll(async () => (await client.query(leased)).rowCount, EVENTUALLY).toBe(0);
  await client.query(`update webhook_endpoints set due_at = now() + interval '1 s'`);
  await client.query(`update domains set check_at = now() + interval '1 s'`);
  await client.query('begin');
  await client.query('select from webhook_endpoints for update');
  await client.query('select from domains for update');
  await sleep(1_500);
  const notifier = new pg.Client({ connectionString: directUrl });
  await notifier.connect();
  await notifier.query(`select ${notifying('webhooks')}, ${notifying('domains')}`);
  await notifier.end();
  return () => client.query('commit');
}

test('the core, its webhooks, checks of domains and batches go on after another machine has taken over the address of Postgres', async () => {
  const account = await api.account();
  const expectDelivered = await addEndpoint(account);
  await addDomain(account);
  const unlock = await lockDue();
  // As many requests as the core has connections, which are all idle then.
  await Promise.all(Array.from({ length: 20 }, () => account.call('GET', '/qr-codes')));
  postgres.vanish();
  // Deliverer and checks now use connections that are dead.
  await sleep(2_000);
  await unlock();
  // More concurrent requests than the core has connections, each of which is dead.
  await Promise.all(Array.from({ length: 30 }, () => account.call('GET', '/qr-codes')));
  await expect.poll(async () => (await account.call('GET', '/qr-codes')).status, VANISHED).toBe(200);
  await account.create();
  const json = { rows: [{ target_url: TARGET }] };
  const batch = (await account.call<{ data: { id: string } }>('POST', '/batches', { json })).body.data.id;
  const batchStatus = async () =>
    (await account.call<{ data: { status: string } }>('GET', `/batches/${batch}`)).body.data.status;
  const domains = internal(api.signpost, DomainsService, account.id);
  const domainState = async () => (await domains.listDomains({})).domains[0]?.state;
  await Promise.all([
    expectDelivered(),
    expect.poll(domainState, VANISHED).toBe(DomainState.VERIFIED),
    expect.poll(batchStatus, VANISHED).toBe('completed'),
    // The relay had its own connection.
    expect.poll(() => outboxOf(directUrl), VANISHED).toBe(0),
  ]);
  // Lets the core stop soon: anything waiting on a dead connection would delay it.
  postgres.cut();
});

async function outboxOf(databaseUrl: string): Promise<number> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  const { rows } = await client.query<{ waiting: number }>('select count(*)::integer as waiting from outbox_waiting');
  await client.end();
  return rows[0]?.waiting ?? -1;
}

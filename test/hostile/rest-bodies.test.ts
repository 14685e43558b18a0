import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createCoreClients } from '../../gateway/core/clients.ts';
import { limitAttempts } from '../../gateway/http/address-limits.ts';
import { createApi } from '../../gateway/rest/api.ts';
import { limitAuthenticationFailures } from '../../gateway/rest/authentication-attempts.ts';
import type { RequestLimits } from '../../gateway/rest/body/request-limits.ts';
import { LOOPBACK } from '../../local/free-port.ts';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { newApiKey } from '../../src/access/api-key.ts';
import { childrenOf, memoryOf } from '../bench/process-tree.ts';
import { type Account, contract, type Failure, TARGET } from '../contract/client.ts';

const running = contract('file');

/** Timeout for things that take a moment, on a busy machine. */
const SOON = { interval: 20 };

const LARGEST = 3_500_000;

/** The head of a POST; its body is up to the caller. */
function head(
  path: string,
  authorization: string | undefined,
  headers: Readonly<Record<string, string | number>>,
): string {
  const all = { host: 'a', ...(authorization === undefined ? {} : { authorization }), ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST /api/v1${path} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

/** A connection, and everything received on it. */
class Client {
  received = '';
  readonly socket: Socket;

  constructor(url: string) {
    const { hostname, port } = new URL(url);
    // Half-open, like a client that stays on purpose: it ends only when the server closes it.
    this.socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    this.socket.setEncoding('latin1').on('data', (text: string) => {
      this.received += text;
    });
    this.socket.on('error', () => {});
    onTestFinished(() => void this.socket.destroy());
  }

  send(bytes: string | Uint8Array): this {
    this.socket.write(bytes);
    return this;
  }

  /** Whether the server has closed the connection. */
  get closed(): boolean {
    return this.socket.readableEnded || this.socket.destroyed;
  }

  /** The statuses of all answers so far, interim ones too. */
  get statuses(): number[] {
    return [...this.received.matchAll(/^HTTP\/1\.1 (\d{3}) /gm)].map(([, status]) => Number(status));
  }

  header(name: string): string | undefined {
    return new RegExp(`\r\n${name}: ([^\r]*)`, 'i').exec(this.received)?.[1];
  }
}

/** Runs a gateway's API in this process with its own limits, in front of the real core. */
async function apiWith(limits: Partial<RequestLimits>, coreAddress?: string): Promise<{ url: string; server: Server }> {
  const address = coreAddress ?? `${LOOPBACK}:${running.signpost.grpcPort}`;
  const core = createCoreClients({ addresses: [address], timeoutMs: 10_000 });
  const api = await createApi({
    core,
    limits,
    attempts: limitAuthenticationFailures(
      limitAttempts(100_000),
      () => LOOPBACK,
      () => undefined,
    ),
    logger: pino({ level: 'silent' }),
    publicUrl: running.signpost.url,
    onRoute: async () => {},
  });
  const server = createServer((request, response) => api.handle(request, response));
  server.on('checkContinue', (request, response) => api.handle(request, response));
  server.listen(0, LOOPBACK);
  await once(server, 'listening');
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await api.close();
    core.close();
  });
  return { url: `http://${LOOPBACK}:${(server.address() as AddressInfo).port}`, server };
}

const bearer = (key: string) => `Bearer ${key}`;

function batchOf(rows: number, more = ''): string {
  return JSON.stringify({
    rows: Array.from({ length: rows }, (_, n) => ({ target_url: `https://a.example/${n}${more}` })),
  });
}

/** Remaining requests of the month, read by a request that itself costs one. */
async function remaining(account: Account): Promise<number> {
  return Number((await account.call<unknown>('GET', '/tags')).headers.get('x-ratelimit-remaining'));
}

describe('an unauthenticated caller', () => {
  test.each([
    ['nothing', () => undefined],
    ['another scheme', () => 'Basic c2s6bGl2ZQ=='],
    ['a token of another shape', () => bearer(`sk_live_${'a'.repeat(42)}`)],
    ['the service token', () => bearer(running.signpost.serviceToken)],
    ['a made-up key', () => bearer(newApiKey())],
  ])('is answered before the body was sent: %s', async (_, authorization) => {
    for (const path of ['/batches', '/qr-codes']) {
      for (const body of [{ 'content-length': 1_000_000 }, { 'transfer-encoding': 'chunked' }]) {
        const headers = { ...body, 'idempotency-key': 'k' };
        const client = new Client(running.signpost.url).send(head(path, authorization(), headers));
        await expect.poll(() => client.statuses, SOON).toEqual([401]);
        expect(client.header('www-authenticate')).toBe('Bearer');
        expect(client.header('idempotent-replay')).toBe('false');
        expect(client.header('connection')).toBe('close');
      }
    }
  });

  test('the service token is not accepted at the REST port', async () => {
    const { status, body } = await running.call('GET', '/api/v1/tags', {
      headers: { authorization: bearer(running.signpost.serviceToken) },
    });
    expect([status, Object.keys(body)]).toEqual([401, ['error']]);
  });

  test('with a malformed token costs the core nothing: it need not even run', async () => {
    const { url } = await apiWith({}, `${LOOPBACK}:1`);
    const ask = (authorization: string) => fetch(`${url}/api/v1/tags`, { headers: { authorization } });
    expect((await ask('Bearer nonsense')).status).toBe(401);
    expect((await ask(bearer(newApiKey()))).status).toBe(503);
  });

  test('gets no 100 Continue', async () => {
    const headers = { 'content-length': 100, expect: '100-continue' };
    const client = new Client(running.signpost.url).send(head('/qr-codes', bearer(newApiKey()), headers));
    await expect.poll(() => client.closed, SOON).toBe(true);
    expect(client.statuses).toEqual([401]);
  });

  test('cannot stay by slowly sending a body that is not read', async () => {
    const client = new Client(running.signpost.url);
    client.send(head('/batches', bearer(newApiKey()), { 'content-length': LARGEST }));
    const sending = setInterval(() => void client.send('x'), 100);
    onTestFinished(() => clearInterval(sending));
    await expect.poll(() => client.closed, SOON).toBe(true);
    expect(client.statuses).toEqual([401]);
  });
});

describe('`Expect: 100-continue` of an account', () => {
  test('is answered before the body, which is then accepted', async () => {
    const { apiKey } = await running.account();
    const json = batchOf(3);
    const headers = { 'content-length': json.length, expect: '100-continue' };
    const client = new Client(running.signpost.url).send(head('/batches', bearer(apiKey), headers));
    await expect.poll(() => client.statuses, SOON).toEqual([100]);
    client.send(json);
    await expect.poll(() => client.statuses, SOON).toEqual([100, 201]);
  });

  test.each([
    ['too large a body', LARGEST + 1, Plan.BUSINESS, 413],
    ['a plan without batches', 1_000, Plan.FREE, 403],
  ])('is not answered for %s', async (_, length, plan, status) => {
    const { apiKey } = await running.account({ plan });
    const headers = { 'content-length': length, expect: '100-continue' };
    const client = new Client(running.signpost.url).send(head('/batches', bearer(apiKey), headers));
    await expect.poll(() => client.statuses, SOON).toEqual([status]);
    expect(client.header('x-ratelimit-remaining')).toBe(status === 413 ? '49999' : '1000');
  });
});

test('a request whose caller was authenticated before its body was read costs 1, like any other', async () => {
  const account = await running.account({ overrides: { monthlyQuota: 3n } });
  const name = { name: 'x', ignored: 'x'.repeat(20_000) };
  const create = (json: object) => account.call<Failure>('POST', '/qr-codes', { json: { ...name, ...json } });
  for (const [json, status, left] of [
    [{ target_url: TARGET }, 201, '2'],
    [{ target_url: 5 }, 400, '1'],
    [{ target_url: TARGET }, 201, '0'],
    [{ target_url: 5 }, 429, '0'],
  ] as const) {
    const answer = await create(json);
    expect([answer.status, answer.headers.get('x-ratelimit-remaining')]).toEqual([status, left]);
  }
});

describe('many large bodies', () => {
  /** Private memory of the gateway's worker, in MiB. */
  const worker = () =>
    Math.max(...childrenOf(running.signpost.gateways[0]?.pid ?? 0).map((pid) => memoryOf(pid, 'RssAnon')));

  /** Peak private memory of the worker during `work`, in MiB. */
  async function peakDuring(work: () => Promise<void>): Promise<number> {
    let peak = worker();
    const looking = setInterval(() => {
      peak = Math.max(peak, worker());
    }, 20);
    try {
      await work();
    } finally {
      clearInterval(looking);
    }
    return peak;
  }

  async function expectBatch(): Promise<void> {
    const account = await running.account({ plan: Plan.ENTERPRISE });
    const raw = batchOf(25_000, '?'.padEnd(90, 'x'));
    expect(raw.length).toBeGreaterThan(3_000_000);
    expect((await account.call<unknown>('POST', '/batches', { raw })).status).toBeLessThan(300);
  }

  test('with made-up keys do not raise memory, and a batch succeeds meanwhile', async () => {
    await expectBatch();
    const before = worker();
    const rows = Buffer.from(`{"rows":[${'{"name":0},'.repeat(LARGEST / 11 - 2)}{}]}`);
    const peak = await peakDuring(async () => {
      const clients = Array.from({ length: 200 }, () => {
        const headers = { 'content-length': rows.length };
        return new Client(running.signpost.url).send(head('/batches', bearer(newApiKey()), headers)).send(rows);
      });
      await expectBatch();
      // A client that keeps sending may miss the answer and is disconnected anyway.
      await expect
        .poll(() => clients.filter(({ statuses, closed }) => !closed && statuses[0] !== 401), SOON)
        .toEqual([]);
      await expect.poll(() => clients.every(({ closed }) => closed), SOON).toBe(true);
    });
    expect(peak - before).toBeLessThan(200);
  });

  test('of one account leave memory for those of others; those without memory get a 503 with Retry-After', async () => {
    const { apiKey } = await running.account();
    const clients = Array.from({ length: 40 }, () => {
      const headers = { 'content-length': LARGEST };
      // The whole body except the last byte.
      return new Client(running.signpost.url)
        .send(head('/batches', bearer(apiKey), headers))
        .send(Buffer.alloc(LARGEST - 1));
    });
    await expectBatch();
    const refused = () => clients.filter(({ statuses }) => statuses[0] === 503);
    await expect.poll(() => refused().length, SOON).toBeGreaterThan(20);
    for (const client of refused()) {
      expect(client.header('retry-after')).toMatch(/^\d+$/);
      expect(client.header('x-ratelimit-remaining')).toBe('50000');
    }
    expect(clients.filter(({ statuses }) => statuses.length === 0).length).toBeGreaterThan(5);
  });
});

describe('phases have time limits', () => {
  test.each([
    ['a small body', '/qr-codes', { 'content-length': 100 }],
    ['a large body', '/batches', { 'content-length': 100_000 }],
    ['a body in chunks', '/qr-codes', { 'transfer-encoding': 'chunked' }],
  ])('%s that arrives a byte now and then: 400, and the connection is closed', async (_, path, headers) => {
    const { apiKey } = await running.account();
    const { url, server } = await apiWith({ bodyMs: 1_000 });
    const clients = Array.from({ length: 50 }, () => new Client(url).send(head(path, bearer(apiKey), headers)));
    const byte = 'content-length' in headers ? 'x' : '1\r\nx\r\n';
    const sending = setInterval(() => {
      for (const client of clients) if (client.socket.writable) client.send(byte);
    }, 200);
    onTestFinished(() => clearInterval(sending));
    await expect.poll(() => clients.every(({ closed }) => closed), SOON).toBe(true);
    for (const client of clients) {
      expect(client.statuses).toEqual([400]);
      expect(client.header('connection')).toBe('close');
      expect(client.header('x-ratelimit-limit')).toBe('50000');
      expect(client.received).toContain('{"error":"The body did not arrive within 1 seconds."}');
    }
    await expect.poll(() => connectionsOf(server), SOON).toBe(0);
  });
});

test('a body that did not arrive in time is not what its idempotency key stands for, and a made-up key comes first', async () => {
  const { apiKey } = await running.account();
  const { url } = await apiWith({ bodyMs: 500 });
  const body = '{"target_url":"https://example.com/"}';
  const post = (key: string) =>
    new Client(url).send(head('/qr-codes', bearer(key), { 'idempotency-key': 'one', 'content-length': body.length }));
  const [slow, stranger] = [post(apiKey), post(newApiKey())];
  for (const client of [slow, stranger]) client.send(body.slice(0, 5));
  await expect.poll(() => [slow, stranger].map(({ statuses }) => statuses), SOON).toEqual([[400], [401]]);
  const again = post(apiKey).send(body);
  await expect.poll(() => again.statuses, SOON).toEqual([201]);
  expect(again.header('idempotent-replay')).toBe('false');
});

function connectionsOf(server: Server): Promise<number> {
  return new Promise((resolve) => server.getConnections((_, count) => resolve(count)));
}

test('a request that waits for memory when its caller disconnects is neither parsed nor charged', async () => {
  const account = await running.account();
  const { url } = await apiWith({ bodyBytes: 60_000, accountBodyBytes: 60_000 });
  const malformed = '{'.repeat(50_000);
  const post = (headers: object = {}) =>
    new Client(url).send(head('/batches', bearer(account.apiKey), { 'content-length': 50_000, ...headers }));
  const before = await remaining(account);
  const holder = post({ expect: '100-continue' });
  await expect.poll(() => holder.statuses, SOON).toEqual([100]);
  const leaving = Array.from({ length: 5 }, () => post().send(malformed));
  await sleep(500);
  for (const { socket } of leaving) socket.destroy();
  holder.send(malformed);
  await expect.poll(() => holder.statuses, SOON).toEqual([100, 400]);
  const next = post().send(malformed);
  await expect.poll(() => next.statuses, SOON).toEqual([400]);
  // Two of those seven were charged; this check costs one.
  expect(await remaining(account)).toBe(before - 3);
});

import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { connect, type Socket } from 'node:net';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { freePort } from '../../local/free-port.ts';
import { newShortCode } from '../../src/codes/create/short-code.ts';
import { type Account, contract } from '../contract/client.ts';
import { scrape } from '../harness/scrape.ts';

/** Local addresses of clients; the last one is the trusted proxy's. */
const [ATTACKER, OTHER, COUNTED, PROXY] = ['127.0.0.5', '127.0.0.6', '127.0.0.7', '127.0.0.9'];
const [CONNECTIONS, FAILURES, UNKNOWN] = [30, 8, 8];

const metricsPort = await freePort();
const running = contract({
  gatewayEnv: { METRICS_PORT: String(metricsPort) },
  env: {
    TRUST_PROXY: `${PROXY}/32`,
    CONNECTIONS_PER_ADDRESS: String(CONNECTIONS),
    FAILED_AUTHENTICATIONS_PER_MINUTE: String(FAILURES),
    UNKNOWN_CODES_PER_MINUTE: String(UNKNOWN),
  },
});
let account: Account;
let code: CodeJson;
beforeAll(async () => {
  account = await running.account();
  code = await account.create();
});

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

function ask(localAddress: string, path: string, headers: Record<string, string> = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const url = `${running.signpost.url}${path}`;
    httpRequest(url, { localAddress, headers, agent: false }, async (response) => {
      const body = Buffer.concat(await response.toArray()).toString();
      resolve({ status: response.statusCode, headers: response.headers, body });
    })
      .once('error', reject)
      .end();
  });
}

const scan = (address: string, headers?: Record<string, string>) => ask(address, `/r/${code.short_code}`, headers);
const wrongKey = () => ({ authorization: `Bearer sk_live_${newShortCode().repeat(7).slice(0, 43)}` });
const read = (address: string, headers: Record<string, string>) => ask(address, `/api/v1/qr-codes/${code.id}`, headers);
const key = () => ({ authorization: `Bearer ${account.apiKey}` });

function open(localAddress: string): Socket {
  const port = Number(new URL(running.signpost.url).port);
  const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  return socket;
}

/** A request whose body is still on its way, in a connection of the proxy. */
function begin(reported: string): Socket {
  const headers = ['Host: a', `X-Forwarded-For: ${reported}`, `Authorization: ${key().authorization}`];
  const socket = open(PROXY);
  socket.write(`POST /api/v1/qr-codes HTTP/1.1\r\n${headers.join('\r\n')}\r\nContent-Length: 9\r\n\r\n{`);
  return socket;
}

/** The statuses of sequential requests. */
async function statuses(count: number, send: () => Promise<Answer>): Promise<(number | undefined)[]> {
  const all = [];
  for (let n = 0; n < count; n++) all.push((await send()).status);
  return all;
}

const exactly = (count: number, status: number) => Array<number>(count).fill(status);

test('failed authentications are limited by address, valid keys and scans are not', async () => {
  expect((await read(ATTACKER, key())).status).toBe(200);
  expect(await statuses(FAILURES + 3, () => read(ATTACKER, wrongKey()))).toEqual([
    ...exactly(FAILURES, 401),
    ...exactly(3, 429),
  ]);
  const { headers, body } = await read(ATTACKER, wrongKey());
  expect(Number(headers['retry-after'])).toBeGreaterThan(0);
  expect(headers['x-request-id']).toBeDefined();
  expect(JSON.parse(body)).toEqual({ error: expect.stringMatching(/failed to authenticate/) });
  // Another client behind the same address.
  expect((await read(ATTACKER, key())).status).toBe(200);
  expect((await scan(ATTACKER)).status).toBe(302);
  expect((await read(OTHER, wrongKey())).status).toBe(401);
});

test('behind a trusted proxy the reported address is limited', async () => {
  const from = (address: string) => ({ 'x-forwarded-for': address });
  const failing = () => read(PROXY, { ...wrongKey(), ...from('198.51.100.1') });
  expect(await statuses(FAILURES + 1, failing)).toEqual([...exactly(FAILURES, 401), 429]);
  expect((await read(PROXY, { ...wrongKey(), ...from('198.51.100.2') })).status).toBe(401);

  const unknown = (address: string) => ask(PROXY, `/r/${newShortCode()}`, from(address));
  expect(await statuses(UNKNOWN + 1, () => unknown('198.51.100.1'))).toEqual([...exactly(UNKNOWN, 404), 429]);
  expect((await unknown('198.51.100.2')).status).toBe(404);
  // Scans of existing codes are not limited.
  expect((await scan(PROXY, from('198.51.100.1'))).status).toBe(302);
});

test('requests in progress are limited by the address that a trusted proxy reports, and those of others go on', async () => {
  const from = (address: string) => ({ ...key(), 'x-forwarded-for': address });
  const begun = Array.from({ length: CONNECTIONS }, () => begin('198.51.100.3'));
  // One may have been refused, as connections are not accepted in the order in which they were opened.
  const readBesideOneMore = async () => {
    begun.push(begin('198.51.100.3'));
    return (await read(PROXY, from('198.51.100.3'))).status;
  };
  await expect.poll(readBesideOneMore).toBe(429);
  const { headers, body } = await read(PROXY, from('198.51.100.3'));
  expect(headers).toMatchObject({ 'retry-after': '1', connection: 'close', 'x-request-id': expect.any(String) });
  expect(JSON.parse(body)).toEqual({ error: expect.stringMatching(/in progress/) });
  expect((await read(PROXY, from('198.51.100.4'))).status).toBe(200);
  // A proxy that reports nobody, as when it asks for health.
  expect((await ask(PROXY, '/healthz')).status).toBe(200);
  expect((await scan(PROXY, { 'x-forwarded-for': '198.51.100.3' })).status).toBe(302);
  for (const socket of begun) socket.destroy();
  await expect.poll(async () => (await read(PROXY, from('198.51.100.3'))).status).toBe(200);
});

test('reports of anyone but a trusted proxy are ignored', async () => {
  const unknown = (n: number) => ask(OTHER, `/r/${newShortCode()}`, { 'x-forwarded-for': `203.0.113.${n}` });
  let n = 0;
  expect(await statuses(UNKNOWN + 1, () => unknown(n++))).toEqual([...exactly(UNKNOWN, 404), 429]);
});

test('connections are limited by address', async () => {
  let closed = 0;
  const opened = (localAddress: string) => void open(localAddress).on('close', () => closed++);
  for (let n = 0; n < CONNECTIONS + 10; n++) opened(ATTACKER);
  await expect.poll(() => closed).toBe(10);
  await expect(scan(ATTACKER)).rejects.toThrow();
  expect((await scan(OTHER)).status).toBe(302);
  for (let n = 0; n < 2 * CONNECTIONS; n++) opened(PROXY);
  expect((await scan(PROXY)).status).toBe(302);
  expect(closed).toBe(11 - 1);
});

test('what is refused is counted by its reason', async () => {
  const refused = async () => {
    const counts =
      (await scrape(metricsPort)).find(({ name }) => name === 'signpost_gateway_refused_total')?.samples ?? [];
    expect(counts.map(({ labels }) => labels.process)).toEqual(counts.map(() => 'worker 0'));
    return Object.fromEntries(counts.map(({ labels, value }) => [labels.signpost_refusal_reason, value]));
  };
  const before = await refused();
  await statuses(FAILURES + 2, () => read(COUNTED, wrongKey()));
  await statuses(UNKNOWN + 3, () => ask(COUNTED, `/r/${newShortCode()}`));
  for (let n = 0; n < CONNECTIONS; n++) begin('198.51.100.5');
  const beyond = { ...key(), 'x-forwarded-for': '198.51.100.5' };
  await expect.poll(async () => (await read(PROXY, beyond)).status).toBe(429);
  const sockets = Array.from({ length: CONNECTIONS + 4 }, () => open(COUNTED));
  await expect.poll(() => sockets.filter(({ destroyed }) => destroyed).length).toBe(4);
  const after = await refused();
  expect(after).toEqual({
    ...before,
    address_connections: (before.address_connections ?? 0) + 4,
    address_requests: expect.any(Number),
    failed_authentications: (before.failed_authentications ?? 0) + 2,
    unknown_codes: (before.unknown_codes ?? 0) + 3,
  });
  expect(after.address_requests).toBeGreaterThan(before.address_requests ?? 0);
});

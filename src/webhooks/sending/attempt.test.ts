import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { afterAll, expect, onTestFinished, test, vi } from 'vitest';
import { freePort } from '../../../local/free-port.ts';
import { ACCEPT, HANG, type Responder, startReceiver } from '../receiver.fixture.ts';
import { newSecret } from '../signature.ts';
import { attempt, connectionsOf } from './attempt.ts';
import { guardedConnect, unguardedConnect } from './guarded-connect.ts';

const agent = connectionsOf(unguardedConnect());
afterAll(() => agent.destroy());
const secrets = [newSecret(), newSecret()];
const body = JSON.stringify({ type: 'qr.created', timestamp: '2026-11-20T09:30:00.000Z', data: { name: 'schön €' } });

function send(url: string, { stop = new AbortController().signal, timeoutMs = 5_000 } = {}) {
  return attempt(agent, { url, secrets, id: 'evt_1', at: new Date(), body }, { stop, timeoutMs });
}

/** A server that passes each connection to `respond` once it has sent anything. Returns its URL. */
async function startRawReceiver(respond: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => respond(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function sendTo(respond: Responder, options?: Parameters<typeof send>[1]) {
  const receiver = await startReceiver(respond);
  return { receiver, outcome: await send(`${receiver.url}/hook?x=1`, options) };
}

test('posts the exact body, which the Standard Webhooks library verifies with either secret', async () => {
  const { receiver, outcome } = await sendTo(ACCEPT);
  expect(outcome).toMatchObject({ status: 204, response: '' });
  const [got] = receiver.received;
  if (!got) throw new Error('no request was received');
  expect(got).toMatchObject({ path: '/hook?x=1', id: 'evt_1', body });
  expect(got.headers['content-type']).toBe('application/json');
  for (const secret of secrets) {
    expect(new Webhook(secret).verify(got.body, got.headers as Record<string, string>)).toEqual(JSON.parse(body));
  }
  expect(() => new Webhook(newSecret()).verify(got.body, got.headers as Record<string, string>)).toThrow();
});

test('returns the status and the first KiB of the response body', async () => {
  const text = `{"error":"nul \0"}${'é'.repeat(3_000)}`;
  const { outcome } = await sendTo((_, response) => void response.writeHead(500).end(text));
  expect(outcome?.status).toBe(500);
  expect(outcome?.response.startsWith('{"error":"nul \ufffd"}éé')).toBe(true);
  expect(Buffer.byteLength(outcome?.response ?? '')).toBeLessThan(1_030);
});

test('reads only the start of an endless response body', async () => {
  let written = 0;
  const { outcome, receiver } = await sendTo((_, response) => {
    response.writeHead(200);
    const writeMore = () => {
      while (!response.destroyed && response.write(Buffer.alloc(65_536, 'x'))) written += 65_536;
      if (!response.destroyed) response.once('drain', writeMore);
    };
    writeMore();
  });
  expect(outcome).toMatchObject({ status: 200, response: 'x'.repeat(1_024) });
  expect(written).toBeLessThan(64 * 1024 * 1024);
  expect(receiver.received).toHaveLength(1);
});

test.each([
  ['extension of a chunk', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;'],
  ['reason phrase', 'HTTP/1.1 200 '],
])('an attempt that gets an endless %s fails soon', async (_, start) => {
  let written = 0;
  const url = await startRawReceiver((socket) => {
    socket.write(start);
    const writeMore = () => {
      while (!socket.destroyed && socket.write(Buffer.alloc(65_536, 'x'))) written += 65_536;
      if (!socket.destroyed) socket.once('drain', writeMore);
    };
    writeMore();
  });
  const outcome = await send(url);
  expect(outcome).toMatchObject({ status: null, response: 'The endpoint sent too long a response.' });
  expect(written).toBeLessThan(64 * 1024 * 1024);
});

test('accepts a few interim responses, and not an endless number', async () => {
  const few: Responder = (_, response) => {
    for (let sent = 0; sent < 20; sent++) response.writeEarlyHints({ link: '</a>; rel=preload' });
    response.writeHead(204).end();
  };
  expect((await sendTo(few)).outcome?.status).toBe(204);
  const endless: Responder = (_, response) => {
    const timer = setInterval(() => response.writeEarlyHints({ link: '</a>; rel=preload' }), 1);
    response.once('close', () => clearInterval(timer));
  };
  const { outcome } = await sendTo(endless, { timeoutMs: 20_000 });
  expect(outcome).toMatchObject({ status: null, response: 'The endpoint sent too many interim responses.' });
});

test.each([1, 2, 20])('accepts %d unsolicited 100 Continue', async (count) => {
  const receiver = await startReceiver((_, response) => {
    for (let sent = 0; sent < count; sent++) response.writeContinue();
    response.writeHead(200).end('HTTP/1.1 100 is not changed here');
  });
  for (let turn = 0; turn < 3; turn++) {
    expect(await send(receiver.url)).toMatchObject({ status: 200, response: 'HTTP/1.1 100 is not changed here' });
  }
});

test('reuses connections after short responses', async () => {
  const receiver = await startReceiver((_, response) => void response.writeHead(200).end('x'.repeat(15_000)));
  for (let turn = 0; turn < 20; turn++) expect((await send(receiver.url))?.status).toBe(200);
  // The connection may not be free yet when the next request follows at once.
  expect(receiver.connections()).toBeLessThanOrEqual(3);
});

test('closes an idle connection soon, however long the receiver would keep it', async () => {
  const closed = Promise.withResolvers<void>();
  const url = await startRawReceiver((socket) => {
    socket.on('close', () => closed.resolve());
    socket.write('HTTP/1.1 204 No Content\r\nkeep-alive: timeout=600\r\n\r\n');
  });
  expect(await send(url)).toMatchObject({ status: 204 });
  await closed.promise;
});

test('does not follow redirects', async () => {
  const target = await startReceiver();
  const { outcome } = await sendTo((_, response) => void response.writeHead(307, { location: target.url }).end());
  expect(outcome?.status).toBe(307);
  expect(target.received).toEqual([]);
});

test('an attempt without a response fails at the time limit', async () => {
  const { outcome } = await sendTo(HANG, { timeoutMs: 200 });
  expect(outcome).toMatchObject({ status: null, response: 'The endpoint did not respond in time.' });
  expect(outcome?.latencyMs).toBeGreaterThanOrEqual(199);
});

test('the time limit is 15 seconds', async () => {
  const received = Promise.withResolvers<void>();
  const receiver = await startReceiver(() => received.resolve());
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const request = { url: receiver.url, secrets, id: 'evt_1', at: new Date(), body };
  const settled = vi.fn();
  const outcome = attempt(agent, request, { stop: new AbortController().signal });
  outcome.then(settled);
  await received.promise;
  await vi.advanceTimersByTimeAsync(14_999);
  expect(settled).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(await outcome).toMatchObject({ response: 'The endpoint did not respond in time.' });
});

test('a 2xx response with an unfinished body is a success, with the body that arrived in time', async () => {
  const { outcome } = await sendTo((_, response) => void response.writeHead(200).write('so far'), { timeoutMs: 300 });
  expect(outcome).toMatchObject({ status: 200, response: 'so far' });
});

test.each([
  ['no server listens', async () => `http://127.0.0.1:${await freePort()}`, 'The connection was refused.'],
  [
    'the connection is closed without a response',
    async () => (await startReceiver((_, { socket }) => void socket?.destroy())).url,
    'The connection was closed without a response.',
  ],
  ['the name does not exist', async () => 'http://nowhere.invalid/', 'The host name does not resolve to an address.'],
  [
    'the server does not use TLS',
    async () => (await startReceiver()).url.replace('http:', 'https:'),
    'The request failed',
  ],
])('when %s, the result says so without details of the network', async (_, url, sentence) => {
  const outcome = await send(await url());
  expect(outcome?.status).toBeNull();
  expect(outcome?.response.startsWith(sentence)).toBe(true);
  expect(outcome?.response).not.toContain('127.0.0.1');
});

test('the outcome of an attempt aborted before the response is undefined', async () => {
  const stopping = new AbortController();
  const { outcome } = await sendTo(() => stopping.abort(), { stop: stopping.signal });
  expect(outcome).toBeUndefined();
});

test('an attempt that no name server could be asked for says nothing about the endpoint', async () => {
  const guarded = connectionsOf(guardedConnect([`127.0.0.1:${await freePort()}`]));
  onTestFinished(() => guarded.destroy());
  const request = { url: 'https://hooks.example.com/', secrets, id: 'evt_1', at: new Date(), body };
  await expect(attempt(guarded, request, { stop: new AbortController().signal })).rejects.toThrow('queryA');
});

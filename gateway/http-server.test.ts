import { once } from 'node:events';
import type { Server, ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createHttpServer, type HttpServerOptions } from './http-server.ts';
import { openFastLane } from './redirect/answer/fast-lane.ts';

const CALL = 'GET /api/v1/tags HTTP/1.1\r\nhost: a.example\r\n\r\n';
const SCAN = 'GET /r/Ab3dE9k HTTP/1.1\r\nhost: a.example\r\n\r\n';
const REFUSED = 'GET http://[:: HTTP/1.1\r\nhost: a.example\r\n\r\n';
const MIB = 1024 * 1024;

/** A server of the API, and a connection to it. */
async function connected(options: Pick<HttpServerOptions, 'api'> & Partial<HttpServerOptions>) {
  const server = createHttpServer({
    scans: { ownsHost: () => false, answered: () => 0, answer() {} },
    table: {} as HttpServerOptions['table'],
    ready() {},
    coreTimeoutMs: 1_000,
    admit: () => true,
    countRefusal() {},
    isStopping: () => false,
    ...options,
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  onTestFinished(() => {
    socket.destroy();
    server.closeAllConnections();
    server.close();
  });
  return { server, socket };
}

test.each([1_000, 70_000])('a request may wait for two calls to the core of %i ms each', async (coreTimeoutMs) => {
  const { server } = await connected({ api: { handle() {} }, coreTimeoutMs });
  // In addition to 15 s for its headers, 10 s for each of its turn and memory, and 30 s for its body.
  expect(server.requestTimeout).toBeGreaterThan(2 * coreTimeoutMs + 65_000);
});

test('behind a refused request no others take effect, and the server stops reading them', async () => {
  let called = 0;
  const { server, socket } = await connected({ api: { handle: () => void called++ } });
  let parsed = 0;
  server.prependListener('request', () => parsed++);
  socket.write(CALL + REFUSED);
  const flood = Buffer.from(CALL.repeat(1_000));
  const isRead = () => Promise.race([once(socket, 'drain').then(() => true), sleep(500, false)]);
  for (let sent = 0; sent < 100; sent++) if (!socket.write(flood) && !(await isRead())) break;
  expect(called).toBe(1);
  expect(parsed).toBeGreaterThan(2);
  expect(parsed).toBeLessThan(5_000);
});

test.each([
  ['answers of the API', CALL],
  ['pages of scans', SCAN],
])('counts a connection that is closed because it leaves too much unread: %s', async (_, request) => {
  const body = Buffer.alloc(144 * MIB);
  const countRefusal = vi.fn();
  const { server, socket } = await connected({
    api: { handle: (_, response) => void response.end(body) },
    scans: {
      ownsHost: () => false,
      answered: () => 0,
      answer: (_, reply) => reply.page('id', 200, { body, headers: {} }),
    },
    countRefusal,
  });
  const accepted = once(server, 'connection');
  socket.pause().write(request + request);
  const [connection] = await accepted;
  await once(connection, 'close');
  expect(countRefusal.mock.calls).toEqual([['unread_answers']]);
});

test('counts what is left unread once on a connection that was handed over by the fast lane', async () => {
  const scans: HttpServerOptions['scans'] = {
    ownsHost: () => false,
    answered: () => 0,
    answer: (_, reply) => reply.page('id', 200, { body: Buffer.alloc(16 * MIB), headers: {} }),
  };
  const countRefusal = vi.fn();
  const api = { handle: (_: unknown, response: ServerResponse) => void response.end(Buffer.alloc(80 * MIB)) };
  const { server, socket } = await connected({ scans, countRefusal, api });
  const lane = openFastLane(server, scans, undefined, countRefusal);
  onTestFinished(() => lane.end());
  const accepted = once(server, 'connection');
  socket.pause().write(SCAN + CALL);
  const [connection] = await accepted;
  await expect.poll(() => connection.writableLength).toBeGreaterThan(0);
  socket.on('data', () => socket.bytesRead > 16 * MIB && socket.pause()).resume();
  await expect.poll(() => connection.writableLength).toBeGreaterThan(72 * MIB);
  // Three checks.
  await sleep(1_500);
  expect(countRefusal).not.toHaveBeenCalled();
});

describe('while it stops, each connection is closed after its response:', () => {
  test('to a request that arrives then', async () => {
    const { socket } = await connected({
      api: { handle: (_, response) => void response.end('late') },
      isStopping: () => true,
    });
    socket.write(CALL);
    expect(await text(socket)).toMatch(/^HTTP\/1.1 200 .*\r\nconnection: close\r\n.*late$/is);
  });

  test('to the last of those that were in progress', async () => {
    let isStopping = false;
    const pending: ServerResponse[] = [];
    const { socket } = await connected({
      api: { handle: (_, response) => void pending.push(response) },
      isStopping: () => isStopping,
    });
    socket.write(CALL + CALL);
    await expect.poll(() => pending).toHaveLength(2);
    isStopping = true;
    for (const [index, response] of pending.entries()) response.end(`answer ${index}`);
    expect(await text(socket)).toMatch(/answer 0HTTP\/1.1 200 .*\r\nconnection: close\r\n.*answer 1$/is);
  });
});

describe('a body that arrives after the answer', () => {
  const answering: Pick<HttpServerOptions, 'api' | 'scans'> = {
    api: { handle: (_, response) => void response.end('answered') },
    scans: {
      ownsHost: () => false,
      answered: () => 0,
      answer: (_, reply) => reply.methodNotAllowed('id', 'GET, HEAD'),
    },
  };
  const headOf = (request: string, body: string) => `${request} HTTP/1.1\r\nhost: a.example\r\n${body}\r\n\r\n`;
  const requests = ['POST /nowhere', 'POST /r/Ab3dE9k', 'GET /healthz'];
  const CHUNK = Buffer.concat([Buffer.from('10000\r\n'), Buffer.alloc(0x1_00_00), Buffer.from('\r\n')]);

  /** A connection, and what arrived on it. */
  function client(server: Server, bytes: string) {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').setEncoding('latin1');
    onTestFinished(() => void socket.destroy());
    const all = { socket, received: '', isClosed: false, closed: Promise.withResolvers<void>() };
    socket.on('error', () => {});
    socket.on('data', (text: string) => {
      all.received += text;
    });
    socket.on('close', () => {
      all.isClosed = true;
      all.closed.resolve();
    });
    socket.write(bytes);
    return all;
  }

  test.each(requests)('is not read without end: %s', async (request) => {
    const { server } = await connected(answering);
    const endless = client(server, headOf(request, 'transfer-encoding: chunked'));
    await expect.poll(() => endless.received).toMatch(/^HTTP\/1.1 (200|405) /);
    const send = () => {
      while (endless.socket.writable && endless.socket.write(CHUNK));
    };
    endless.socket.on('drain', send);
    send();
    await endless.closed.promise;
  });

  test('may take five seconds', async () => {
    const { server } = await connected(answering);
    const slow = client(server, headOf('POST /nowhere', 'content-length: 1000'));
    const start = performance.now();
    const sending = setInterval(() => slow.socket.writable && slow.socket.write('x'), 200);
    onTestFinished(() => clearInterval(sending));
    await slow.closed.promise;
    expect(performance.now() - start).toBeGreaterThan(4_000);
  });

  test('is read to its end with three others; of more the connection is closed', async () => {
    const { server } = await connected(answering);
    const open = (request: string) => client(server, headOf(request, 'content-length: 1'));
    const clients = [...requests, ...requests, ...requests].map(open);
    const left = () => clients.filter(({ isClosed }) => !isClosed);
    await expect.poll(() => left().length).toBe(4);
    for (const { socket } of left()) socket.write(`x${CALL}`);
    await expect.poll(() => left().every(({ received }) => received.endsWith('answered'))).toBe(true);
    // They have made room for as many.
    await sleep(200);
    const next = requests.map(open);
    await sleep(500);
    expect(next.filter(({ isClosed }) => isClosed)).toEqual([]);
  });

  test('right behind its head leaves the connection open, however many there are', async () => {
    const { server } = await connected(answering);
    const clients = Array.from({ length: 20 }, () => client(server, headOf('POST /nowhere', 'content-length: 1')));
    await expect.poll(() => clients.every(({ received }) => received !== '')).toBe(true);
    for (const { socket } of clients) socket.write(`x${CALL}`);
    await expect.poll(() => clients.every(({ received }) => received.split('answered').length === 3)).toBe(true);
    await sleep(300);
    expect(clients.filter(({ isClosed }) => isClosed)).toEqual([]);
  });
});

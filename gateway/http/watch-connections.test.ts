import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { openFastLane } from '../redirect/answer/fast-lane.ts';
import type { Reply, ScanRequest } from '../redirect/answer/scan-request.ts';
import { proxiesIn } from './origin.ts';
import { watchConnections } from './watch-connections.ts';

/** Larger than what a kernel buffers for a client that does not read. */
const LARGE = Buffer.alloc(16_000_000);
const MAX_PER_ADDRESS = 10;
const MAX_TOTAL = 60;
const PROXY = '127.0.0.9';

let server: Server;
/** Resolving it answers the pending requests to `/held` and `Held222`. */
let release: PromiseWithResolvers<void>;
let refused: string[];

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  release = Promise.withResolvers();
  refused = [];
  server = createServer(async ({ url }, response) => {
    if (url === '/held') await release.promise;
    response.end(url === '/docs' ? LARGE : 'small');
  });
  const scans = {
    ownsHost: () => false,
    answered: () => 0,
    async answer({ shortCode }: ScanRequest, reply: Reply) {
      if (shortCode === 'Held222') await release.promise;
      reply.page('id', 200, { body: shortCode === 'Large22' ? LARGE : Buffer.from('small'), headers: {} });
    },
  };
  const fast = openFastLane(server, scans, undefined, () => {});
  const watching = watchConnections(server, {
    mostPerAddress: MAX_PER_ADDRESS,
    most: MAX_TOTAL,
    isProxy: proxiesIn([PROXY]),
    isAnswering: fast.isAnswering,
    countRefusal: (reason) => void refused.push(reason),
    logger: pino({ level: 'silent' }),
  });
  onTestFinished(() => {
    watching.close();
    fast.destroy();
    server.closeAllConnections();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterEach(() => void vi.useRealTimers());

/** Opens a connection from an address of this machine. */
async function open(localAddress = '127.0.0.1'): Promise<{ socket: Socket; isClosed(): boolean }> {
  const { port } = server.address() as AddressInfo;
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  let closed = false;
  socket
    .on('error', () => undefined)
    .on('close', () => {
      closed = true;
    });
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect').catch(() => undefined);
  return { socket, isClosed: () => closed };
}

function connections(): Promise<number> {
  return new Promise((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );
}

describe.each([
  ['the fast lane', 'GET /r/Large22 HTTP/1.1\r\nhost: a\r\n\r\n'],
  ['Node’s server', 'GET /docs HTTP/1.1\r\nhost: a\r\n\r\n'],
])('in %s:', (_, request) => {
  test('a connection whose client does not read the response is closed after a minute', async () => {
    const { socket } = await open();
    socket.pause().write(request);
    await expect.poll(connections).toBe(1);
    await sleep(200);
    vi.advanceTimersByTime(60_000);
    expect(await connections()).toBe(1);
    vi.advanceTimersByTime(10_000);
    await expect.poll(connections).toBe(0);
  });

  test('a connection whose client reads the response stays open', async () => {
    const { socket } = await open();
    for (let round = 0; round < 3; round++) {
      const wanted = socket.bytesRead + LARGE.length;
      socket.resume().write(request);
      await expect.poll(() => socket.bytesRead).toBeGreaterThan(wanted);
      vi.advanceTimersByTime(30_000);
    }
    expect(await connections()).toBe(1);
  });
});

test('connections of an address beyond its limit are closed at once', async () => {
  const first = await Promise.all(Array.from({ length: MAX_PER_ADDRESS }, () => open()));
  const further = await Promise.all(Array.from({ length: 5 }, () => open()));
  await expect.poll(() => further.filter(({ isClosed }) => isClosed()).length).toBe(5);
  expect(first.filter(({ isClosed }) => isClosed())).toEqual([]);
  const other = await open('127.0.0.2');
  for (const { socket } of first.slice(0, 2)) socket.destroy();
  await expect.poll(connections).toBe(MAX_PER_ADDRESS - 2 + 1);
  const again = await Promise.all([open(), open()]);
  await sleep(100);
  expect([other, ...again].filter(({ isClosed }) => isClosed())).toEqual([]);
});

test('a trusted proxy may have any number of connections', async () => {
  const all = await Promise.all(Array.from({ length: 5 * MAX_PER_ADDRESS }, () => open(PROXY)));
  await sleep(100);
  expect(all.filter(({ isClosed }) => isClosed())).toEqual([]);
});

/** Opens the maximum number of connections, from several addresses; returns them in the order of opening. */
async function openAll(): Promise<Awaited<ReturnType<typeof open>>[]> {
  const all = [];
  for (let n = 0; n < MAX_TOTAL; n++) all.push(await open(`127.0.1.${Math.floor(n / MAX_PER_ADDRESS)}`));
  await expect.poll(connections).toBe(MAX_TOTAL);
  return all;
}

/** Sends a request; `answer` returns what has been received. */
function send(socket: Socket, path: string): { answer(): string } {
  let answer = '';
  socket.on('data', (bytes) => {
    answer += bytes;
  });
  socket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`);
  return { answer: () => answer };
}

describe.each([
  ['the fast lane', '/r/Small22', '/r/Held222', '/r/Large22'],
  ['Node’s server', '/small', '/held', '/docs'],
])('with too many connections in total, in %s:', (_, small, held, large) => {
  test('a new connection replaces the one that has been idle for longest, and none with a pending response', async () => {
    const all = await openAll();
    const [pending, , kept] = all;
    if (!pending || !kept) throw new Error('unreachable');
    const late = send(pending.socket, held);
    // It got a response recently, unlike the connections before and after it.
    await expect.poll(send(kept.socket, small).answer).toContain('small');
    const further = [await open(), await open()];
    await expect.poll(() => all.flatMap(({ isClosed }, n) => (isClosed() ? [n] : []))).toEqual([1, 3]);
    for (const { socket } of further) await expect.poll(send(socket, small).answer).toContain('small');
    release.resolve();
    await expect.poll(late.answer).toContain('small');
    expect(await connections()).toBe(MAX_TOTAL);
    expect(refused).toEqual(['idle_connections', 'idle_connections']);
  });

  test('a new connection is reset while all others have pending responses, and accepted again afterwards', async () => {
    const all = await openAll();
    const answers = all.map(({ socket }) => send(socket, held));
    await sleep(200);
    const rejected = await open();
    await expect.poll(rejected.isClosed).toBe(true);
    expect(refused).toEqual(['connections']);
    expect(all.filter(({ isClosed }) => isClosed())).toEqual([]);
    release.resolve();
    for (const { answer } of answers) await expect.poll(answer).toContain('small');
    await sleep(200);
    const accepted = await open();
    await expect.poll(send(accepted.socket, small).answer).toContain('small');
  });

  test.each([
    ['send half a request', 'POST /held HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n12345'],
    ['do not read', `GET ${large} HTTP/1.1\r\nhost: a\r\n\r\n`],
  ])('clients that %s do not block new connections', async (_, request) => {
    for (const { socket } of await openAll()) socket.pause().write(request);
    await sleep(500);
    const further = await Promise.all(Array.from({ length: MAX_PER_ADDRESS }, () => open()));
    for (const { socket } of further) await expect.poll(send(socket, small).answer).toContain('small');
    expect(await connections()).toBe(MAX_TOTAL);
  });
});

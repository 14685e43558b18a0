import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { openFastLane } from './redirect/answer/fast-lane.ts';
import { proxiesIn } from './redirect/answer/origin.ts';
import type { Reply, ScanRequest } from './redirect/answer/scan-request.ts';
import { watchConnections } from './watch-connections.ts';

/** As large as no kernel buffers for a client that does not read. */
const LARGE = Buffer.alloc(16_000_000);
const MOST = 10;
const MOST_IN_ALL = 60;
const PROXY = '127.0.0.9';

let server: Server;
/** Answers the requests that are held. */
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
  const fast = openFastLane(server, scans, undefined);
  const watching = watchConnections(server, {
    mostPerAddress: MOST,
    most: MOST_IN_ALL,
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

/** A connection from an address of this machine; `closed` resolves when the server ends it. */
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
])('by %s:', (_, request) => {
  test('a connection whose answer nobody reads is closed after a minute', async () => {
    const { socket } = await open();
    socket.pause().write(request);
    await expect.poll(connections).toBe(1);
    await sleep(200);
    vi.advanceTimersByTime(60_000);
    expect(await connections()).toBe(1);
    vi.advanceTimersByTime(10_000);
    await expect.poll(connections).toBe(0);
  });

  test('one whose answer is read stays', async () => {
    const { socket } = await open();
    for (let round = 0; round < 3; round++) {
      const wanted = socket.bytesRead + LARGE.length;
      socket.resume().write(request);
      await expect.poll(() => socket.bytesRead, { timeout: 20_000 }).toBeGreaterThan(wanted);
      vi.advanceTimersByTime(30_000);
    }
    expect(await connections()).toBe(1);
  });
});

test('an address has so many connections at a time, and the others are closed at once', async () => {
  const first = await Promise.all(Array.from({ length: MOST }, () => open()));
  const further = await Promise.all(Array.from({ length: 5 }, () => open()));
  await expect.poll(() => further.filter(({ isClosed }) => isClosed()).length).toBe(5);
  expect(first.filter(({ isClosed }) => isClosed())).toEqual([]);
  const other = await open('127.0.0.2');
  for (const { socket } of first.slice(0, 2)) socket.destroy();
  await expect.poll(connections).toBe(MOST - 2 + 1);
  const again = await Promise.all([open(), open()]);
  await sleep(100);
  expect([other, ...again].filter(({ isClosed }) => isClosed())).toEqual([]);
});

test('a trusted proxy may have any number', async () => {
  const all = await Promise.all(Array.from({ length: 5 * MOST }, () => open(PROXY)));
  await sleep(100);
  expect(all.filter(({ isClosed }) => isClosed())).toEqual([]);
});

/** As many connections as there may be, of several addresses, in the order in which they were opened. */
async function openAll(): Promise<Awaited<ReturnType<typeof open>>[]> {
  const all = [];
  for (let n = 0; n < MOST_IN_ALL; n++) all.push(await open(`127.0.1.${Math.floor(n / MOST)}`));
  await expect.poll(connections).toBe(MOST_IN_ALL);
  return all;
}

/** Asks on a connection; `answer` gives what has arrived. */
function ask(socket: Socket, path: string): { answer(): string } {
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
])('with too many connections in all, by %s:', (_, small, held, large) => {
  test('a further one takes the place of the one that has been idle for longest, and none whose answer is due', async () => {
    const all = await openAll();
    const [due, , kept] = all;
    if (!due || !kept) throw new Error('there are more');
    const late = ask(due.socket, held);
    // It has had an answer lately, which neither the one before it nor those behind it have.
    await expect.poll(ask(kept.socket, small).answer).toContain('small');
    const further = [await open(), await open()];
    await expect.poll(() => all.flatMap(({ isClosed }, n) => (isClosed() ? [n] : []))).toEqual([1, 3]);
    for (const { socket } of further) await expect.poll(ask(socket, small).answer).toContain('small');
    release.resolve();
    await expect.poll(late.answer).toContain('small');
    expect(await connections()).toBe(MOST_IN_ALL);
    expect(refused).toEqual(['idle_connections', 'idle_connections']);
  });

  test('a further one is reset while every answer is due, and has room again when one has been given', async () => {
    const all = await openAll();
    const answers = all.map(({ socket }) => ask(socket, held));
    await sleep(200);
    const beyond = await open();
    await expect.poll(beyond.isClosed).toBe(true);
    expect(refused).toEqual(['connections']);
    expect(all.filter(({ isClosed }) => isClosed())).toEqual([]);
    release.resolve();
    for (const { answer } of answers) await expect.poll(answer).toContain('small');
    await sleep(200);
    const taken = await open();
    await expect.poll(ask(taken.socket, small).answer).toContain('small');
  });

  test.each([
    ['send half a request', 'POST /held HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n12345'],
    ['do not read', `GET ${large} HTTP/1.1\r\nhost: a\r\n\r\n`],
  ])('clients that %s hold no place', async (_, request) => {
    for (const { socket } of await openAll()) socket.pause().write(request);
    await sleep(500);
    const further = await Promise.all(Array.from({ length: MOST }, () => open()));
    for (const { socket } of further) await expect.poll(ask(socket, small).answer).toContain('small');
    expect(await connections()).toBe(MOST_IN_ALL);
  });
});

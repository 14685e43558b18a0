import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { openFastLane } from './redirect/answer/fast-lane.ts';
import { proxiesIn } from './redirect/answer/origin.ts';
import type { Reply, ScanRequest } from './redirect/answer/scan-request.ts';
import { watchConnections } from './watch-connections.ts';

/** As large as no kernel buffers for a client that does not read. */
const LARGE = Buffer.alloc(16_000_000);
const MOST = 10;

let server: Server;

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  server = createServer((_request, response) => response.end(LARGE));
  const scans = {
    ownsHost: () => false,
    answered: () => 0,
    answer: (_request: ScanRequest, reply: Reply) => reply.page('id', 200, { body: LARGE, headers: {} }),
  };
  const fast = openFastLane(server, scans, undefined);
  const watching = watchConnections(server, MOST, proxiesIn(['127.0.0.9']));
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
  ['the fast lane', 'GET /r/Ab3dE9k HTTP/1.1\r\nhost: a\r\n\r\n'],
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
  const all = await Promise.all(Array.from({ length: 5 * MOST }, () => open('127.0.0.9')));
  await sleep(100);
  expect(all.filter(({ isClosed }) => isClosed())).toEqual([]);
});

import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { limitUnread } from './connection-limits.ts';

/** More than a kernel buffers for a client that does not read. */
const LARGE = Buffer.alloc(16_000_000);
const UNREAD_MS = 300;

test('an HTTP/1.1 connection whose response is not read is closed, and one that waits for its response is not', async () => {
  const waiting = Promise.withResolvers<void>();
  const server = createServer(async ({ url }, response) => {
    if (url === '/waits') await waiting.promise;
    response.end(url === '/waits' ? 'answer' : LARGE);
  });
  limitUnread(server, UNREAD_MS);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const asking = (path: string) => {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    onTestFinished(() => void socket.destroy());
    socket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`);
    return socket.pause();
  };
  const waits = asking('/waits');
  asking('/large');
  const connections = () => new Promise((resolve) => server.getConnections((_error, count) => resolve(count)));
  await expect.poll(connections).toBe(2);
  await expect.poll(connections, { timeout: 10_000 }).toBe(1);
  waiting.resolve();
  const answer = once(waits, 'data');
  waits.resume();
  expect(String((await answer)[0])).toContain('answer');
});

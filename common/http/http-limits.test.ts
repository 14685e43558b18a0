import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { limitPipelining, limitUnread } from './http-limits.ts';

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
  const port = await listen(server);
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
  await expect.poll(connections).toBe(1);
  waiting.resolve();
  const answer = once(waits, 'data');
  waits.resume();
  expect(String((await answer)[0])).toContain('answer');
});

test('a connection may have ten requests in progress, and is closed with the next one', async () => {
  const pending: ServerResponse[] = [];
  const server = createServer((_, response) => void pending.push(response));
  limitPipelining(server);
  const port = await listen(server);
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  let received = '';
  socket.on('data', (text) => {
    received += text;
  });
  const send = (requests: number) => socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(requests));

  send(10);
  await expect.poll(() => pending.length).toBe(10);
  // Answered requests no longer count.
  for (const response of pending.splice(0)) response.end('answer');
  await expect.poll(() => received.split('answer').length - 1).toBe(10);
  send(10);
  await expect.poll(() => pending.length).toBe(10);
  const closed = once(socket, 'close');
  send(1_000);
  await closed;
  expect(pending).toHaveLength(10);
});

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

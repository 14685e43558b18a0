import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createHttpServer, type HttpServerOptions } from './http-server.ts';

const CALL = 'GET /api/v1/tags HTTP/1.1\r\nhost: a.example\r\n\r\n';
const REFUSED = 'GET http://[:: HTTP/1.1\r\nhost: a.example\r\n\r\n';

/** A server of the API, and a connection to it. */
async function connected(options: Pick<HttpServerOptions, 'api'> & Partial<HttpServerOptions>) {
  const server = createHttpServer({
    scans: { ownsHost: () => false, answered: () => 0, answer() {} },
    table: {} as HttpServerOptions['table'],
    ready() {},
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
  ['pages of scans', 'GET /r/Ab3dE9k HTTP/1.1\r\nhost: a.example\r\n\r\n'],
])('counts a connection that is closed because it leaves too much unread: %s', async (_, request) => {
  const body = Buffer.alloc(144 * 1024 * 1024);
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

test('while it stops, each connection is closed after its response', async () => {
  const { socket } = await connected({
    api: { handle: (_, response) => void response.end('late') },
    isStopping: () => true,
  });
  socket.write(CALL);
  expect(await text(socket)).toMatch(/^HTTP\/1.1 200 .*\r\nconnection: close\r\n.*late$/is);
});

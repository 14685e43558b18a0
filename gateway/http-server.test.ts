import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { createHttpServer, type HttpServerOptions } from './http-server.ts';

const CALL = 'GET /api/v1/tags HTTP/1.1\r\nhost: a.example\r\n\r\n';
const REFUSED = 'GET http://[:: HTTP/1.1\r\nhost: a.example\r\n\r\n';

test('behind a refused request no others take effect, and the server stops reading them', async () => {
  let called = 0;
  const server = createHttpServer({
    scans: { ownsHost: () => false } as unknown as HttpServerOptions['scans'],
    table: {} as HttpServerOptions['table'],
    api: { handle: () => void called++ },
    ready() {},
    admit: () => true,
    countRefusal() {},
    isStopping: () => false,
  });
  let parsed = 0;
  server.prependListener('request', () => parsed++);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  onTestFinished(() => {
    socket.destroy();
    server.closeAllConnections();
    server.close();
  });
  socket.write(CALL + REFUSED);
  const flood = Buffer.from(CALL.repeat(1_000));
  const isRead = () => Promise.race([once(socket, 'drain').then(() => true), sleep(500, false)]);
  for (let sent = 0; sent < 100; sent++) if (!socket.write(flood) && !(await isRead())) break;
  expect(called).toBe(1);
  expect(parsed).toBeGreaterThan(2);
  expect(parsed).toBeLessThan(5_000);
});

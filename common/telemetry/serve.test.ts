import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { freePort, LOOPBACK } from '../../local/free-port.ts';
import { serveObserved } from './serve.ts';

const logger = pino({ level: 'silent' });
const ready = { collect: async () => [], unready: async () => undefined };

test('a port in use is taken once it is free, and delays no start', async () => {
  const port = await freePort();
  const former = createServer().listen(port, LOOPBACK);
  await once(former, 'listening');
  await using _ = await serveObserved({ host: LOOPBACK, port, logger, ...ready });
  former.close();
  const health = () => fetch(`http://${LOOPBACK}:${port}/healthz`).then(({ status }) => status, String);
  await expect.poll(health).toBe(200);
});

test('an address that this machine does not have ends the start with a sentence', async () => {
  const served = serveObserved({ host: '192.0.2.1', port: await freePort(), logger, ...ready });
  await expect(served).rejects.toThrow(/^METRICS_PORT \d+ can't be listened on: EADDRNOTAVAIL\.$/);
});

test('a process that is not ready says why, and metrics that can’t be collected are a 500', async () => {
  const port = await freePort();
  const unready = async () => 'Postgres does not answer.';
  const collect = () => Promise.reject(new Error('no metrics'));
  await using _ = await serveObserved({ host: LOOPBACK, port, logger, collect, unready });
  const get = async (path: string) => {
    const response = await fetch(`http://${LOOPBACK}:${port}${path}`);
    return [response.status, await response.text()];
  };
  expect(await get('/readyz')).toEqual([503, 'Postgres does not answer.']);
  expect(await get('/metrics')).toEqual([500, 'Metrics could not be collected.']);
  expect(await get('/healthz')).toEqual([200, 'alive']);
});

test('a process that can’t tell whether it is ready is not', async () => {
  const port = await freePort();
  const unready = () => Promise.reject(new Error('no state'));
  await using _ = await serveObserved({ host: LOOPBACK, port, logger, ...ready, unready });
  const response = await fetch(`http://${LOOPBACK}:${port}/readyz`);
  expect([response.status, await response.text()]).toEqual([503, 'Readiness could not be determined.']);
});

test('a connection with many requests in progress is closed', async () => {
  const port = await freePort();
  const collect = () => new Promise<never>(() => {});
  await using _ = await serveObserved({ host: LOOPBACK, port, logger, ...ready, collect });
  const socket = connect(port, LOOPBACK).on('error', () => {});
  socket.resume().write('GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(100));
  await once(socket, 'close', { signal: AbortSignal.timeout(5_000) });
});

test('idle connections do not keep others from being answered', async () => {
  const port = await freePort();
  await using _ = await serveObserved({ host: LOOPBACK, port, logger, ...ready });
  for (let n = 0; n < 32; n++) {
    const socket = connect(port, LOOPBACK).on('error', () => {});
    onTestFinished(() => void socket.destroy());
    socket.write('GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n');
    await once(socket, 'data');
  }
  expect((await fetch(`http://${LOOPBACK}:${port}/healthz`)).status).toBe(200);
});

test('nothing is served without a port', async () => {
  const servers = () => process.getActiveResourcesInfo().filter((resource) => resource === 'TCPServerWrap').length;
  const before = servers();
  await using _ = await serveObserved({ host: LOOPBACK, port: undefined, logger, ...ready });
  expect(servers()).toBe(before);
});

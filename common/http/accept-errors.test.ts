import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { limitConnections } from '../../src/rpc/connection-limits.ts';
import { recordingLogger } from '../../test/harness/recording-logger.ts';

test('connections that were not accepted, or closed for being too many, are logged once a minute, with their number', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const { lines, logger } = recordingLogger();
  const server = createServer();
  limitConnections(server, logger);
  server.maxConnections = 1;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const open = () => {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    onTestFinished(() => void socket.destroy());
    return socket;
  };
  await Promise.all([once(open(), 'connect'), once(server, 'connection')]);
  const drop = async () => {
    const dropped = once(server, 'drop');
    open();
    await dropped;
  };
  const fail = () => server.emit('error', Object.assign(new Error('accept ENOBUFS'), { code: 'ENOBUFS' }));
  const logged = () => lines.map((line) => JSON.parse(line));
  const tooMany = { level: 40, msg: 'connections beyond the limit were closed', most: 1 };
  const failed = { level: 50, msg: 'connections could not be accepted', code: 'ENOBUFS' };

  for (let n = 0; n < 5; n++) {
    await drop();
    fail();
  }
  expect(logged()).toMatchObject([
    { ...tooMany, connections: 1 },
    { ...failed, connections: 1 },
  ]);
  vi.advanceTimersByTime(60_000);
  await drop();
  fail();
  expect(logged().slice(2)).toMatchObject([
    { ...tooMany, connections: 5 },
    { ...failed, connections: 5 },
  ]);
  // No address is in them.
  expect(lines.join()).not.toContain('127.0.0.1');
});

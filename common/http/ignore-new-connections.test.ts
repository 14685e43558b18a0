import { once } from 'node:events';
import { type AddressInfo, BoundSocket, connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { ignoreNewConnections } from './ignore-new-connections.ts';

test.runIf(process.platform === 'linux')(
  'new connections wait until the socket is closed, open ones go on',
  async () => {
    const socket = new BoundSocket({ host: '127.0.0.1', port: 0 });
    const { port } = socket.address() as AddressInfo;
    const descriptor = socket.fd();
    const server = createServer((connection) => connection.pipe(connection)).listen(socket);
    await once(server, 'listening');
    const open = () => {
      const connection = connect({ host: '127.0.0.1', port });
      onTestFinished(() => void connection.destroy());
      return connection;
    };
    const before = open();
    await once(before, 'connect');

    expect(ignoreNewConnections(descriptor)).toBe(true);
    const ignored = open();
    const outcome = Promise.race([
      once(ignored, 'connect').then(() => 'connected'),
      once(ignored, 'error').then(([error]) => error.code),
    ]).catch((error) => error.code);
    before.write('still here');
    expect(String(await once(before, 'data'))).toBe('still here');
    expect(await Promise.race([outcome, sleep(300, 'waiting')])).toBe('waiting');

    server.close();
    // The client's second attempt, a second after the first.
    expect(await outcome).toBe('ECONNREFUSED');
  },
);

import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { startDatabase } from './database.ts';
import { readSettings } from './settings.ts';

/** Postgres's request for a login by SASL, by a mechanism that pg does not know. */
const UNKNOWN_LOGIN = Buffer.from([...Buffer.from('R'), 0, 0, 0, 12, 0, 0, 0, 10, ...Buffer.from('X\0\0\0')]);

test('a Postgres with which pg can’t talk is reported with the reason', async () => {
  const server = createServer((socket) => {
    socket.once('data', () => socket.write(UNKNOWN_LOGIN)).on('error', () => undefined);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const settings = readSettings({ DATABASE_URL: `postgres://someone:secret@${host}/signpost` });
  await expect(startDatabase(settings)).rejects.toThrow(
    new OperatorError(
      `Postgres at ${host} (DATABASE_URL) can't be used: SASL: Only mechanism(s) SCRAM-SHA-256 are supported.`,
    ),
  );
});

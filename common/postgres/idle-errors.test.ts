import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import pg from 'pg';
import { type Logger, pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { limitAttempts } from '../../gateway/http/address-limits.ts';
import { lookUpUnknownCodes } from '../../gateway/redirect/routes/unknown-codes.ts';
import { openDatabase } from '../../src/db/database.ts';
import { entities } from '../../src/entities.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { recordingLogger } from '../../test/harness/recording-logger.ts';
import { openPostgresLog } from '../log/postgres.ts';
import { logIdleErrors } from './idle-errors.ts';
import { withConnection } from './sql.ts';
import { isUnavailable } from './unavailable.ts';

const CONNECTIONS = 5;

/** Terminates all other connections of the database and returns their number. */
async function endConnections(url: string): Promise<number> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    const ended = await client.query(
      `select pg_terminate_backend(pid, 5000) from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`,
    );
    return ended.rowCount ?? 0;
  } finally {
    await client.end();
  }
}

test('broken idle connections are logged once a minute, with their number and without secrets', async () => {
  const { url } = await freshDatabase();
  const { lines, logger } = recordingLogger();
  const { pool, close } = await openDatabase(url, CONNECTIONS, entities, logger);
  onTestFinished(() => close());
  for (const _ of [1, 2]) {
    await Promise.all(Array.from({ length: CONNECTIONS }, () => pool.query('select pg_sleep(0.1)')));
    expect(pool.idleCount).toBe(CONNECTIONS);
    expect(await endConnections(url)).toBe(CONNECTIONS);
    await expect.poll(() => pool.totalCount).toBe(0);
  }
  await pool.query('select');
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 40, connections: 1, code: '57P01' });
  expect(lines[0]).not.toContain(decodeURIComponent(new URL(url).password));
  expect(lines[0]).not.toContain('secretKey');
});

test.each([
  [
    'the log in Postgres',
    (url: string, logger: Logger) => {
      const log = openPostgresLog({ url, clientId: 'test', logger });
      return { use: () => log.check(), close: () => log.close() };
    },
  ],
  [
    'the look-ups of unknown codes',
    (url: string, logger: Logger) => {
      const unknown = lookUpUnknownCodes(url, limitAttempts(1), () => {}, logger);
      return { use: () => unknown.find('abcdefg', '192.0.2.1'), close: () => unknown.close() };
    },
  ],
])('an idle connection of %s that breaks is logged as a warning', async (_, open) => {
  const { url } = await freshDatabase();
  const { lines, logger } = recordingLogger();
  const { use, close } = open(url, logger);
  onTestFinished(() => close());
  await use();
  expect(await endConnections(url)).toBe(1);
  await expect.poll(() => lines.length).toBe(1);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 40, connections: 1, code: '57P01' });
});

test('a connection that is terminated as soon as it is established fails only what uses it', async () => {
  const ready = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49]);
  const fields = Buffer.from('SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0');
  const fatal = Buffer.concat([Buffer.from([0x45, 0, 0, 0, fields.length + 4]), fields]);
  // In one packet, so that it is read before the caller has the connection.
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.end(Buffer.concat([ready, fatal])));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const pool = new pg.Pool({ host: '127.0.0.1', port, user: 'a', database: 'a' });
  onTestFinished(async () => {
    await pool.end();
    server.close();
  });
  logIdleErrors(pool, pino({ level: 'silent' }));
  await expect(withConnection(pool, ({ client }) => client.query('select'))).rejects.toSatisfy(isUnavailable);
  expect(pool.totalCount).toBe(0);
});

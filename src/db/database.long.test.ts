import { readFileSync } from 'node:fs';
import type { Pool } from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { promptStatement, run, statement, transaction, withConnection } from '../../common/postgres/sql.ts';
import { isUnavailable } from '../../common/postgres/unavailable.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import type { TcpProxy } from '../../test/harness/open-tcp-proxy.ts';
import { startTcpProxy } from '../../test/harness/tcp-proxy.ts';
import { entities } from '../entities.ts';
import { type Database, openDatabase } from './database.ts';

const EVENTUALLY = { timeout: 60_000, interval: 100 };
const CONNECTIONS = 3;
const one = statement<{ one: number }>('test_one', 'select 1 as one');
const promptly = promptStatement<{ one: number }>('test_promptly', 'select 1 as one');

/** A database behind a proxy, over whose idle connections statements have run. */
async function open(): Promise<{ database: Database; postgres: TcpProxy }> {
  const postgres = await startTcpProxy((await freshDatabase()).url);
  const database = await openDatabase(postgres.url, CONNECTIONS, entities);
  onTestFinished(() => database.close());
  const all = await Promise.all(Array.from({ length: CONNECTIONS }, () => database.pool.connect()));
  for (const client of all) await run(client, one);
  for (const client of all) client.release();
  expect(database.pool.idleCount).toBe(CONNECTIONS);
  return { database, postgres };
}

test.each<[string, (pool: Pool) => Promise<unknown>]>([
  ['transactions', (pool) => transaction(pool, (tx) => run(tx, one))],
  ['prompt statements', (pool) => run(pool, promptly)],
  [
    'prompt statements on a connection that is held',
    (pool) => withConnection(pool, ({ client }) => run(client, promptly)),
  ],
])(
  'a server that vanished is away to %s, and each of its connections is found out once',
  async (_, use) => {
    const { database, postgres } = await open();
    postgres.vanish();
    const failed = await Promise.allSettled(Array.from({ length: CONNECTIONS }, () => use(database.pool)));
    for (const outcome of failed) {
      expect(outcome.status).toBe('rejected');
      expect(isUnavailable((outcome as PromiseRejectedResult).reason)).toBe(true);
    }
    await use(database.pool);
    expect(database.pool.totalCount).toBe(1);
  },
  60_000,
);

test('a connection that breaks off in the middle of a transaction is put back by nobody', async () => {
  const { database, postgres } = await open();
  const work = transaction(database.pool, async (tx) => {
    postgres.vanish();
    await run(tx, promptly);
  });
  await expect(work).rejects.toSatisfy(isUnavailable);
  // The idle ones have gone after their ten seconds, right before.
  expect(database.pool.totalCount).toBe(0);
}, 60_000);

const ESTABLISHED = '01';

/** What the system has a timer for on each connection to a port, as Linux tells it. */
function timersOf(port: number): string[] {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const rows = readFileSync('/proc/self/net/tcp', 'utf8').split('\n').slice(1);
  return rows.flatMap((row) => {
    const [, , remote, state, , timer] = row.trim().split(/\s+/);
    return remote?.endsWith(`:${hex}`) && state === ESTABLISHED ? [timer?.slice(0, 2) ?? ''] : [];
  });
}

test.skipIf(process.platform !== 'linux')('the system looks after idle connections', async () => {
  const { postgres } = await open();
  const port = Number(new URL(postgres.url).port);
  // 02: keepalive. Another timer may run for the moment until what was sent is acknowledged.
  await expect.poll(() => timersOf(port), EVENTUALLY).toEqual(Array.from({ length: CONNECTIONS }, () => '02'));
});

import { readFileSync } from 'node:fs';
import type { Pool } from 'pg';
import { type TestContext, test } from 'vitest';
import { promptStatement, run, statement, transaction, withConnection } from '../../common/postgres/sql.ts';
import { isUnavailable } from '../../common/postgres/unavailable.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import type { TcpProxy } from '../../test/harness/open-tcp-proxy.ts';
import { startTcpProxy } from '../../test/harness/tcp-proxy.ts';
import { entities } from '../entities.ts';
import { type Database, openDatabase } from './database.ts';

const EVENTUALLY = { timeout: 60_000, interval: 100 };
const CONNECTIONS = 3;
const selectOne = statement<{ selectOne: number }>('test_one', 'select 1 as one');
const selectOnePromptly = promptStatement<{ selectOne: number }>('test_promptly', 'select 1 as one');

/** A database behind a proxy, with idle connections that have run a statement. */
async function open({ expect, onTestFinished }: TestContext): Promise<{ database: Database; postgres: TcpProxy }> {
  const postgres = await startTcpProxy((await freshDatabase()).url);
  const database = await openDatabase(postgres.url, CONNECTIONS, entities);
  onTestFinished(() => database.close());
  const all = await Promise.all(Array.from({ length: CONNECTIONS }, () => database.pool.connect()));
  for (const client of all) await run(client, selectOne);
  for (const client of all) client.release();
  expect(database.pool.idleCount).toBe(CONNECTIONS);
  return { database, postgres };
}

// They wait for timeouts, each with a database of its own.
test.concurrent.for<[string, (pool: Pool) => Promise<unknown>]>([
  ['transactions', (pool) => transaction(pool, (tx) => run(tx, selectOne))],
  ['prompt statements', (pool) => run(pool, selectOnePromptly)],
  [
    'prompt statements on a checked-out connection',
    (pool) => withConnection(pool, ({ client }) => run(client, selectOnePromptly)),
  ],
])('a vanished server is unavailable to %s, and each of its connections fails once', async ([, use], context) => {
  const { expect } = context;
  const { database, postgres } = await open(context);
  postgres.vanish();
  const failed = await Promise.allSettled(Array.from({ length: CONNECTIONS }, () => use(database.pool)));
  for (const outcome of failed) {
    expect(outcome.status).toBe('rejected');
    expect(isUnavailable((outcome as PromiseRejectedResult).reason)).toBe(true);
  }
  await use(database.pool);
  expect(database.pool.totalCount).toBe(1);
});

test.concurrent('a connection that breaks during a transaction is not released to the pool', async (context) => {
  const { expect } = context;
  const { database, postgres } = await open(context);
  const work = transaction(database.pool, async (tx) => {
    postgres.vanish();
    await run(tx, selectOnePromptly);
  });
  await expect(work).rejects.toSatisfy(isUnavailable);
  // The idle connections were closed just before, after their ten seconds.
  expect(database.pool.totalCount).toBe(0);
});

const ESTABLISHED = '01';

/** The kind of timer that Linux runs for each established connection to a port. */
function timersOf(port: number): string[] {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const rows = readFileSync('/proc/self/net/tcp', 'utf8').split('\n').slice(1);
  return rows.flatMap((row) => {
    const [, , remote, state, , timer] = row.trim().split(/\s+/);
    return remote?.endsWith(`:${hex}`) && state === ESTABLISHED ? [timer?.slice(0, 2) ?? ''] : [];
  });
}

test
  .skipIf(process.platform !== 'linux')
  .concurrent('the system probes idle connections with keep-alive', async (context) => {
    const { expect } = context;
    const { postgres } = await open(context);
    const port = Number(new URL(postgres.url).port);
    // 02: keepalive. Another timer may run until sent data is acknowledged.
    await expect.poll(() => timersOf(port), EVENTUALLY).toEqual(Array.from({ length: CONNECTIONS }, () => '02'));
  });

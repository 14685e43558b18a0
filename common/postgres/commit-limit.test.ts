import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Database, openDatabase } from '../../src/db/database.ts';
import { ormTransaction } from '../../src/db/orm-transaction.ts';
import { entities } from '../../src/entities.ts';
import { afterFile } from '../../test/harness/after-file.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { readFailure } from '../contract/errors.ts';
import type { CommitLimit } from './commit-limit.ts';
import { transaction } from './sql.ts';
import { isUnavailable } from './unavailable.ts';

type Run = (sql: string) => Promise<unknown>;

/** The time limit of transactions in these tests, in ms. */
const SHORT_MS = 1_000;

let database: Database;
beforeAll(async () => {
  const { url } = await freshDatabase();
  const preparing = await openDatabase(url, 2, entities);
  await preparing.pool.query('create table changes (name text)');
  // As an operator may have set it: it must not replace the limit of the call.
  await preparing.pool.query(`alter database ${new URL(url).pathname.slice(1)} set transaction_timeout = '1h'`);
  await preparing.close();
  database = await openDatabase(url, 2, entities);
  afterFile(() => database.close());
});

const { signal } = new AbortController();
const inMs = (ms: number): CommitLimit => ({ signal, commitBy: Date.now() + ms });

async function errorOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => undefined,
    (error: unknown) => error,
  );
}

describe.each([
  {
    name: 'transaction',
    limited: (limit: CommitLimit, work: (run: Run) => Promise<unknown>) =>
      transaction(database.pool, (tx) => work((sql) => tx.query(sql)), limit),
  },
  {
    name: 'ormTransaction',
    limited: (limit: CommitLimit, work: (run: Run) => Promise<unknown>) =>
      ormTransaction(database.orm, (em) => work((sql) => em.execute(sql)), limit),
  },
])('$name', ({ name, limited }) => {
  const insert = (change: string) => `insert into changes (name) values ('${name} ${change}')`;
  const changes = async () => {
    const { rows } = await database.pool.query<{ name: string }>(
      'select name from changes where starts_with(name, $1)',
      [`${name} `],
    );
    return rows.map((row) => row.name.slice(name.length + 1));
  };

  test('commits before its limit, and sets none for the next transaction', async () => {
    await limited(inMs(60_000), (run) => run(insert('in time')));
    await limited({ signal, commitBy: undefined }, async (run) => {
      expect(await run('show transaction_timeout')).toMatchObject(
        name === 'transaction' ? { rows: [{ transaction_timeout: '1h' }] } : [{ transaction_timeout: '1h' }],
      );
    });
    expect(await changes()).toContain('in time');
  });

  test.each([
    ['a statement runs', (run: Run) => run('select pg_sleep(1.5)')],
    ['it is idle', () => sleep(SHORT_MS + 500)],
  ])('commits nothing when its limit passes while %s', async (when, wait) => {
    const error = await errorOf(
      limited(inMs(SHORT_MS), async (run) => {
        await run(insert(when));
        await wait(run);
      }),
    );
    expect(error).toSatisfy(isUnavailable);
    expect(await changes()).not.toContain(when);
    // Both connections of the pool are usable.
    await Promise.all([1, 2].map(() => limited(inMs(60_000), (run) => run('select pg_sleep(0.1)'))));
  });

  test('does not begin after its limit', async () => {
    const error = await errorOf(limited(inMs(-1_000), () => Promise.reject(new Error('it has begun'))));
    expect(readFailure(error).reason).toBe('TOO_LATE');
  });

  test('neither begins nor commits once the caller has stopped waiting', async () => {
    const leaving = new AbortController();
    const limit = { signal: leaving.signal, commitBy: undefined };
    const why = new Error('the caller has left');
    const limitedWork = limited(limit, async (run) => {
      await run(insert('left'));
      leaving.abort(why);
    });
    expect(await errorOf(limitedWork)).toBe(why);
    expect(await errorOf(limited(limit, () => Promise.reject(new Error('it has begun'))))).toBe(why);
    expect(await changes()).not.toContain('left');
  });
});

import { createContextValues, type HandlerContext } from '@connectrpc/connect';
import type { PoolClient } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freshDatabase } from '../../test/harness/database.ts';
import { type Database, openDatabase } from '../db/database.ts';
import { entities } from '../entities.ts';
import { ormTransactionOf, transactionOf } from './call-transaction.ts';

let database: Database;
beforeAll(async () => {
  database = await openDatabase((await freshDatabase()).url, 4, entities);
  await database.pool.query('create table counters (name text primary key, value integer not null)');
});
afterAll(() => database.close());

const context = {
  values: createContextValues(),
  signal: new AbortController().signal,
  requestHeader: new Headers(),
} as unknown as HandlerContext;

type Run = (work: (tx: PoolClient) => Promise<void>, of?: HandlerContext) => Promise<void>;

describe.each<[string, Run]>([
  ['transactionOf', (work, of = context) => transactionOf(of, database.pool, work)],
  ['ormTransactionOf', (work, of = context) => ormTransactionOf(of, database.orm, (_, tx) => work(tx))],
])('%s', (_, run) => {
  test('repeats the transaction that Postgres rolls back to end a deadlock', async () => {
    await database.pool.query(`delete from counters; insert into counters values ('a', 0), ('b', 0)`);
    let begun = 0;
    const bothHold = Promise.withResolvers<void>();
    const increment = (tx: PoolClient, name: string) =>
      tx.query('update counters set value = value + 1 where name = $1', [name]);
    const incrementBoth = (first: string, second: string) =>
      run(async (tx) => {
        await increment(tx, first);
        if (++begun === 2) bothHold.resolve();
        await bothHold.promise;
        await increment(tx, second);
      });
    await Promise.all([incrementBoth('a', 'b'), incrementBoth('b', 'a')]);
    // Usually 3. A repeated transaction that gets the row before the one that waits for it ends in another deadlock.
    expect(begun).toBeGreaterThan(2);
    const { rows } = await database.pool.query('select value from counters');
    expect(rows).toEqual([{ value: 2 }, { value: 2 }]);
  });

  test('fails if it is rolled back three times', async () => {
    let begun = 0;
    const deadlock = run(async (tx) => {
      begun++;
      await tx.query(`do $$ begin raise exception using errcode = '40P01', message = 'deadlock detected'; end $$`);
    });
    await expect(deadlock).rejects.toThrow('deadlock detected');
    expect(begun).toBe(3);
  });

  test('commits nothing for a call that is late, or whose caller leaves meanwhile', async () => {
    await database.pool.query('delete from counters');
    const insert = async (tx: PoolClient) => void (await tx.query(`insert into counters values ('late', 0)`));
    const requestHeader = new Headers({ 'signpost-commit-by': String(Date.now() - 1_000) });
    await expect(run(insert, { ...context, requestHeader })).rejects.toThrow();
    const caller = new AbortController();
    const insertAndLeave = (tx: PoolClient) => insert(tx).finally(() => caller.abort());
    await expect(run(insertAndLeave, { ...context, signal: caller.signal })).rejects.toThrow();
    expect((await database.pool.query('select from counters')).rowCount).toBe(0);
  });
});

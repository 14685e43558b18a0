import { create } from '@bufbuild/protobuf';
import { createContextValues, type HandlerContext } from '@connectrpc/connect';
import type { PoolClient } from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { newUuid } from '../../common/contract/ids.ts';
import { PostgresUnavailable } from '../../common/postgres/unavailable.ts';
import { AdmissionService } from '../../proto/gen/signpost/access/v1/admission_pb.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { insertAccount } from '../../test/harness/insert-account.ts';
import { CONNECT_TIMEOUT_MS, type Database, openDatabase } from '../db/database.ts';
import { entities } from '../entities.ts';
import { inAccountQueue } from './account-queue.ts';
import { ormTransactionOf, transactionOf } from './call-transaction.ts';
import { type Account, callerKey } from './caller.ts';
import { once } from './idempotency/once.ts';

/** More than the connections of the pool. */
const MANY = 50;

let database: Database;
/** UUID of an account that exists. */
const existing = newUuid();
beforeAll(async () => {
  database = await openDatabase((await freshDatabase()).url, 10, entities);
  await database.pool.query(`create table counters (name text primary key, value integer not null)`);
  await insertAccount(database.pool, { id: existing });
});
afterAll(() => database.close());

/** A call that acts for an account. */
function callOf(id: string): HandlerContext {
  const values = createContextValues().set(callerKey, { kind: 'service', account: { id } as Account, actor: 'a test' });
  return {
    values,
    signal: new AbortController().signal,
    requestHeader: new Headers(),
    responseHeader: new Headers(),
  } as unknown as HandlerContext;
}

/** A call with an idempotency key that was not used before. */
function onceWithNewKey(account: string, work: (tx: PoolClient) => Promise<unknown>) {
  const context = callOf(account);
  context.requestHeader.set('idempotency-key', newUuid());
  const method = AdmissionService.method.authenticate;
  const request = create(method.input, { method: 'x' });
  return once({ pool: database.pool, accountId: existing, context, method, request }, async (tx) => {
    await work(tx);
    return create(method.output);
  });
}

describe.each<[string, (account: string, work: (tx: PoolClient) => Promise<unknown>) => Promise<unknown>]>([
  ['transactionOf', (account, work) => transactionOf(callOf(account), database.pool, work)],
  ['ormTransactionOf', (account, work) => ormTransactionOf(callOf(account), database.orm, (_, tx) => work(tx))],
  ['once', onceWithNewKey],
])('%s', (_, change) => {
  const increment = (account: string) =>
    change(account, (tx) => tx.query('update counters set value = value + 1 where name = $1', [account]));

  test('changes of one account that wait for each other leave connections for other accounts', async () => {
    await database.pool.query(`delete from counters; insert into counters values ('a', 0), ('b', 0)`);
    const blocker = await database.pool.connect();
    await blocker.query('begin');
    await blocker.query(`select from counters where name = 'a' for update`);
    const changes = Promise.all(Array.from({ length: MANY }, () => increment('a')));
    for (let n = 0; n < MANY; n++) await increment('b');
    const waiting = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
    await expect.poll(async () => (await database.pool.query(waiting)).rowCount).toBe(4);
    await blocker.query('rollback');
    blocker.release();
    await changes;
    const { rows } = await database.pool.query('select value from counters');
    expect(rows).toEqual([{ value: MANY }, { value: MANY }]);
  });
});

test('a turn can end before its work, and one without an account waits for nobody', async () => {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const begun: string[] = [];
  const begin = (name: string) => (endOfTurn: () => void) => {
    begun.push(name);
    if (name === 'waits') endOfTurn();
    return ended;
  };
  const waiting = Array.from({ length: MANY }, () => inAccountQueue(callOf('a'), begin('waits')));
  await expect.poll(() => begun.length).toBe(MANY);
  const working = Array.from({ length: MANY }, () => inAccountQueue(callOf('a'), begin('works')));
  const anyone = { ...callOf('a'), values: createContextValues() };
  const withoutAccount = Array.from({ length: MANY }, () => inAccountQueue(anyone, begin('without account')));
  await new Promise(setImmediate);
  expect(begun.filter((name) => name === 'works')).toHaveLength(4);
  expect(begun.filter((name) => name === 'without account')).toHaveLength(MANY);
  end();
  await Promise.all([...waiting, ...working, ...withoutAccount]);
  await expect(inAccountQueue(callOf('a'), () => Promise.reject(new Error('no')))).rejects.toThrow('no');
});

test('a change that has waited for its turn as long as for a connection fails, as Postgres is unavailable', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const [fifth, ...changes] = Array.from({ length: 5 }, () => inAccountQueue(callOf('a'), () => ended)).reverse();
  const outcome = fifth?.catch((error: unknown) => error);
  vi.advanceTimersByTime(CONNECT_TIMEOUT_MS);
  end();
  expect(await outcome).toBeInstanceOf(PostgresUnavailable);
  await Promise.all(changes);
});

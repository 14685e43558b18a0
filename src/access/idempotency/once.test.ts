import { create } from '@bufbuild/protobuf';
import { createContextValues, type HandlerContext } from '@connectrpc/connect';
import type { PoolClient } from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { failure, readFailure } from '../../../common/contract/errors.ts';
import { newUuid } from '../../../common/contract/ids.ts';
import { AdmissionService } from '../../../proto/gen/signpost/access/v1/admission_pb.ts';
import { freshDatabase } from '../../../test/harness/database.ts';
import { insertAccount } from '../../../test/harness/insert-account.ts';
import { type Database, openDatabase } from '../../db/database.ts';
import { LOCKS } from '../../db/locks.ts';
import { entities } from '../../entities.ts';
import { type Account, callerKey } from '../caller.ts';
import { once } from './once.ts';

const METHOD = AdmissionService.method.authenticate;

let databases: [Database, Database];
let account: string;
beforeAll(async () => {
  const { url } = await freshDatabase();
  databases = [await openDatabase(url, 10, entities), await openDatabase(url, 10, entities)];
  await databases[0].pool.query('create table written (by text)');
});
afterAll(() => Promise.all(databases.map((database) => database.close())));
beforeEach(async () => {
  account = await newAccount();
});

async function newAccount(id = newUuid()): Promise<string> {
  await insertAccount(databases[0].pool, { id });
  return id;
}

/** Calls a method with a key; resolves to its answer, or the reason of its error, and whether that is a replay. */
async function call(
  work: {
    operation?: (tx: PoolClient) => Promise<string>;
    finish?: (answer: string) => Promise<string>;
  },
  { of = account, key = 'key', core = 0 }: { of?: string; key?: string; core?: 0 | 1 } = {},
): Promise<[string, string | null]> {
  const { operation = () => Promise.reject(new Error('it runs again')), finish } = work;
  const context = {
    values: createContextValues().set(callerKey, {
      kind: 'service',
      account: { id: of } as Account,
      actor: 'a test',
    }),
    signal: new AbortController().signal,
    requestHeader: new Headers({ 'idempotency-key': key }),
    responseHeader: new Headers(),
  } as unknown as HandlerContext;
  const answer = (accountId: string) => create(METHOD.output, { accountId });
  try {
    const { accountId } = await once(
      {
        pool: databases[core].pool,
        accountId: of,
        context,
        method: METHOD,
        request: create(METHOD.input, { method: 'x' }),
      },
      async (tx) => answer(await operation(tx)),
      finish && (async (stored) => answer(await finish(stored.accountId))),
    );
    return [accountId, context.responseHeader.get('idempotent-replay')];
  } catch (error) {
    const { reason, metadata } = { ...readFailure(error), metadata: (error as { metadata: Headers }).metadata };
    return [reason, metadata.get('idempotent-replay')];
  }
}

test.each<[string, (tx: PoolClient) => Promise<unknown>, string]>([
  ['a limit', () => Promise.reject(failure('QR_LIMIT_REACHED', 'No.')), 'QR_LIMIT_REACHED'],
  ['a sentence with a NUL', () => Promise.reject(failure('INVALID_FIELD', 'x: not \0.')), 'INVALID_FIELD'],
  ['Postgres', (tx) => tx.query('select $1::text', ['\0']), 'INVALID_FIELD'],
])(
  'nothing that an operation wrote is left when %s rejects it, and its error is replayed',
  async (by, reject, reason) => {
    const operation = async (tx: PoolClient) => {
      await tx.query('insert into written values ($1)', [by]);
      await reject(tx);
      return 'done';
    };
    expect(await call({ operation })).toEqual([reason, 'false']);
    expect(await call({}, { core: 1 })).toEqual([reason, 'true']);
    expect((await databases[0].pool.query('select from written where by = $1', [by])).rowCount).toBe(0);
  },
);

test('a key of one account neither delays, answers nor changes the same key of another one', async () => {
  const other = await newAccount();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const first = call({ operation: async () => 'stored', finish: () => released.then(() => 'first') });
  const second = call({ operation: async () => 'stored', finish: async () => 'second' }, { of: other });
  expect(await second).toEqual(['second', 'false']);
  release();
  expect(await first).toEqual(['first', 'false']);
  expect(await call({})).toEqual(['first', 'true']);
  expect(await call({}, { of: other })).toEqual(['second', 'true']);
});

test('a key whose hash is the number of a lock of the cores does not take that lock', async () => {
  const [id, key] = ['01997b2e-5a1c-7d3e-9f40-1a2b3c4d5e6f', 'kkkkkkk0000sC~>Y_OS/N1'];
  const { pool } = databases[0];
  const { rows } = await pool.query<{ id: string }>(`select hashtextextended($1 || ' ' || $2, 0) as id`, [id, key]);
  expect(Number(rows[0]?.id)).toBe(LOCKS.relay);
  await newAccount(id);
  const relay = await pool.connect();
  await relay.query('select pg_advisory_lock($1)', [LOCKS.relay]);
  try {
    expect(await call({ operation: async () => 'created' }, { of: id, key })).toEqual(['created', 'false']);
  } finally {
    relay.release(true);
  }
});

test('a key is in flight until its call has finished, also at other cores, and replays the final answer', async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const { promise: stored, resolve: isStored } = Promise.withResolvers<void>();
  const finish = async () => {
    isStored();
    await released;
    return 'final';
  };
  const first = call({ operation: async () => 'stored', finish });
  await stored;
  for (const core of [0, 1] as const) {
    expect(await call({ finish }, { core })).toEqual(['IDEMPOTENCY_KEY_IN_FLIGHT', 'false']);
  }
  release();
  expect(await first).toEqual(['final', 'false']);
  for (const core of [0, 1] as const) expect(await call({ finish }, { core })).toEqual(['final', 'true']);
});

test('the answer of an operation is replayed if finishing it failed', async () => {
  const finish = () => Promise.reject(failure('UNAVAILABLE', 'No.'));
  expect(await call({ operation: async () => 'stored', finish })).toEqual(['UNAVAILABLE', 'false']);
  for (const core of [1, 0] as const) expect(await call({ finish }, { core })).toEqual(['stored', 'true']);
});

test('calls that are being finished do not take turns', async () => {
  let finishing = 0;
  const { promise: all, resolve } = Promise.withResolvers<void>();
  const finish = async (answer: string) => {
    if (++finishing === 8) resolve();
    await all;
    return answer;
  };
  const calls = Array.from({ length: 8 }, (_, n) =>
    call({ operation: async () => String(n), finish }, { key: String(n) }).finally(resolve),
  );
  expect(await Promise.all(calls)).toEqual(Array.from({ length: 8 }, (_, n) => [String(n), 'false']));
});

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import type * as lmdb from 'lmdb';
import { pino } from 'pino';
import { expect, onTestFinished, test, vi } from 'vitest';
import { encodeId, newUuid } from '../../../common/contract/ids.ts';
import { Answer, RouteSchema } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import { openRouteTable } from './route-table.ts';

/** The errors with which the next transactions fail after they have written. */
const failures: Error[] = [];

// lmdb undoes a transaction by itself too rarely for a test, and does not export the class of its stores.
vi.mock('lmdb', async (original) => {
  const real = await original<typeof lmdb>();
  const open = (options: lmdb.RootDatabaseOptionsWithPath) => {
    const store = real.open<Buffer, string>(options);
    const transact = store.transactionSync.bind(store);
    store.transactionSync = (write) =>
      transact(() => {
        const result = write();
        const failure = failures.shift();
        if (failure) throw failure;
        return result;
      });
    return store;
  };
  return { ...real, open };
});

const failure = (code: number) => Object.assign(new Error('the transaction was undone'), { code });

const value = {
  shortCode: 'abcdefg',
  codeId: encodeId('qr', newUuid()),
  accountId: encodeId('acct', newUuid()),
  answer: Answer.REDIRECT,
  targetUrl: 'https://example.com/',
};
const route = create(RouteSchema, { version: 1n, entry: { case: 'code', value } });
const REACHED = { partition: 0, next: 2n };

function openTable() {
  const folder = mkdtempSync(join(tmpdir(), 'signpost-routes-'));
  const table = openRouteTable(folder, pino({ level: 'silent' }));
  onTestFinished(async () => {
    await table.close();
    rmSync(folder, { recursive: true });
  });
  return table;
}

test.each([-30_798, -30_781])('a transaction that lmdb undoes with error %i is repeated', async (code) => {
  const table = openTable();
  failures.push(failure(code), failure(code));
  await table.advance([route], REACHED);
  expect(failures).toEqual([]);
  expect(table.code('abcdefg')?.targetUrl).toBe('https://example.com/');
  expect(table.positions()).toEqual(new Map([[0, 2n]]));
});

test('a transaction that fails for another reason is not repeated', async () => {
  const table = openTable();
  failures.push(failure(28));
  await expect(table.advance([route], REACHED)).rejects.toThrow('undone');
  expect(table.code('abcdefg')).toBeUndefined();
  expect(table.positions()).toEqual(new Map());
});

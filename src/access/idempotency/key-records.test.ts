import { afterAll, beforeAll, expect, test } from 'vitest';
import { freshDatabase } from '../../../test/harness/database.ts';
import { insertAccount } from '../../../test/harness/insert-account.ts';
import { type Database, openDatabase } from '../../db/database.ts';
import { entities } from '../../entities.ts';
import { deleteExpiredKeys } from './key-records.ts';

let databases: Database[];
beforeAll(async () => {
  const { url } = await freshDatabase();
  databases = await Promise.all([openDatabase(url, 2, entities), openDatabase(url, 2, entities)]);
});
afterAll(() => Promise.all(databases.map((database) => database.close())));

// Source: docs/contract.md, "Idempotency".
test('one sweep deletes all keys older than 24 hours, however many, beside that of another core', async () => {
  const [{ pool }] = databases as [Database, Database];
  const account = await insertAccount(pool);
  const insert = (prefix: string, count: number, age: string) =>
    pool.query(
      `insert into idempotency (account_id, key, fingerprint, response, created_at)
       select $1, $2 || n, '', '', now() - $4::interval from generate_series(1, $3::integer) n`,
      [account, prefix, count, age],
    );
  await insert('expired-', 12_000, '24 hours');
  await insert('kept-', 3, '23 hours 59 minutes');
  await Promise.all(databases.map(({ pool: of }) => deleteExpiredKeys(of)));
  const left = `select split_part(key, '-', 1) as keys, count(*)::integer from idempotency group by 1`;
  expect((await pool.query(left)).rows).toEqual([{ keys: 'kept', count: 3 }]);
});

test('a sweep that is stopped ends after the current statement, and the next one deletes the rest', async () => {
  const [{ pool }] = databases as [Database, Database];
  await pool.query(
    `insert into idempotency (account_id, key, fingerprint, response, created_at)
     select $1, n, '', '', now() - interval '25 hours' from generate_series(1, 12000) n`,
    [await insertAccount(pool)],
  );
  const left = async () => {
    const expired = `select from idempotency where created_at < now() - interval '24 hours'`;
    return (await pool.query(expired)).rowCount;
  };
  const stopping = new AbortController();
  const sweep = deleteExpiredKeys(pool, stopping.signal);
  stopping.abort();
  await sweep;
  expect(await left()).toBe(7_000);
  await deleteExpiredKeys(pool);
  expect(await left()).toBe(0);
});

import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { decodeId } from '../common/contract/ids.ts';
import { type Signpost, startSignpost } from '../test/harness/processes.ts';
import { commandLine } from './cli.fixture.ts';

let signpost: Signpost;
let pool: pg.Pool;
beforeAll(async () => {
  signpost = await startSignpost({ gateways: 0, env: { ROLES: 'rpc' } });
  pool = new pg.Pool({ connectionString: signpost.databaseUrl });
});
afterAll(() => pool.end());

const { json } = commandLine(() => signpost);

interface Listed {
  readonly id: string;
  readonly name: string;
}

test.each(['folder', 'tag'])('%s list shows all of them, however many pages they are', async (label) => {
  const { accountId } = await signpost.createAccount();
  await pool.query(
    `insert into ${label}s (id, account_id, name)
     select uuidv7(), $1, lpad(n::text, 5, '0') from generate_series(1, 2345) n`,
    [decodeId('acct', accountId)],
  );
  const listed = await json<Listed[]>(label, 'list', '--account', accountId);
  expect(listed.map(({ name }) => Number(name))).toEqual(Array.from({ length: 2_345 }, (_, n) => n + 1));
});

test('account list shows all accounts, or as many as requested', async () => {
  await pool.query(`insert into accounts (id, name, plan) select uuidv7(), n, 'free' from generate_series(1, 2345) n`);
  const { rows } = await pool.query<{ name: string }>('select name from accounts order by id desc');
  const names = rows.map(({ name }) => name);
  const list = async (...options: string[]) =>
    (await json<Listed[]>('account', 'list', ...options)).map(({ name }) => name);
  expect(await list()).toEqual(names);
  expect(await list('--limit', '1500', '--offset', '2')).toEqual(names.slice(2, 1_502));
  expect(await list('--limit', '3')).toEqual(names.slice(0, 3));
});

test('account audit shows the newest 100 entries, or as many as requested', async () => {
  const { accountId } = await signpost.createAccount();
  await pool.query(
    `insert into audit_entries (id, account_id, actor, action, subject)
     select uuidv7(), $1, 'a test', n, '' from generate_series(1, 2345) n`,
    [decodeId('acct', accountId)],
  );
  const audit = (...options: string[]) => json<Listed[]>('account', 'audit', '--account', accountId, ...options);
  expect(await audit()).toHaveLength(100);
  expect(new Set((await audit('--limit', '2000')).map(({ id }) => id)).size).toBe(2_000);
});

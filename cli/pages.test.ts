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

const { run, json } = commandLine(() => signpost);

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

test('code list says in JSON too that its default limit left codes out', async () => {
  const { accountId } = await signpost.createAccount();
  const create = ['code', 'create', '--account', accountId, '--target-url', 'https://example.com'];
  for (let n = 0; n < 26; n++) await json(...create);
  const list = ['code', 'list', '--account', accountId, '--json'];
  const cut = await run(list);
  expect(cut).toMatchObject({ code: 0, stderr: '25 of 26 codes; --limit and --offset show others.\n' });
  expect(JSON.parse(cut.stdout)).toHaveLength(25);
  expect((await run([...list, '--limit', '25'])).stderr).toBe('');
});

test('target history shows all versions, or as many as requested', async () => {
  const { accountId } = await signpost.createAccount();
  const targetUrl = ['--target-url', 'https://example.com'];
  const { id } = await json<Listed>('code', 'create', '--account', accountId, ...targetUrl);
  await pool.query(
    `with changed as (update codes set target_version = 234 where account_id = $1)
     insert into target_versions (account_id, code_id, version, target_url, author, note, created_at)
     select $1, $2, n, 'https://example.com', '', '', now() from generate_series(1, 234) n`,
    [decodeId('acct', accountId), decodeId('qr', id)],
  );
  const history = async (...options: string[]) =>
    (await json<{ version: number }[]>('target', 'history', '--account', accountId, '--id', id, ...options)).map(
      ({ version }) => version,
    );
  const versions = Array.from({ length: 234 }, (_, n) => 234 - n);
  expect(await history()).toEqual(versions);
  expect(await history('--limit', '120')).toEqual(versions.slice(0, 120));
});

test('account audit shows the newest 100 entries, or as many as requested', async () => {
  const { accountId } = await signpost.createAccount();
  await pool.query(
    `insert into audit_entries (id, account_id, actor, action, subject)
     select uuidv7(), $1, 'a test', n, '' from generate_series(1, 2345) n`,
    [decodeId('acct', accountId)],
  );
  const audit = (...options: string[]) => json<Listed[]>('account', 'audit', '--account', accountId, ...options);
  const newest = await run(['account', 'audit', '--account', accountId, '--json']);
  expect(newest).toMatchObject({ code: 0, stderr: 'There are more than these 100 entries; --limit shows more.\n' });
  expect(JSON.parse(newest.stdout)).toHaveLength(100);
  // With the entry of its creation.
  expect(await audit('--offset', '2246')).toHaveLength(100);
  expect(new Set((await audit('--limit', '2000')).map(({ id }) => id)).size).toBe(2_000);
});

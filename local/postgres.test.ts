import { mkdir, mkdtemp, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterEach, expect, test } from 'vitest';
import { LOOPBACK } from './free-port.ts';
import { type LocalPostgres, startPostgres } from './postgres.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A folder that only this user can access, like root's temporary folders. */
async function closedFolder(): Promise<string> {
  const closed = await mkdtemp(join(tmpdir(), 'signpost-postgres-'));
  cleanups.push(() => rm(closed, { recursive: true, force: true }));
  return join(closed, 'postgres');
}

async function start(folder: string): Promise<LocalPostgres> {
  const postgres = await startPostgres({ folder, settings: { fsync: 'off' } });
  cleanups.push(() => postgres.stop());
  return postgres;
}

async function query(url: string, statement: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query({ text: statement, rowMode: 'array' })).rows.flat();
  } finally {
    await client.end();
  }
}

test('a stopped Postgres starts again with its data and address, despite remains of a start that died', async () => {
  const folder = await closedFolder();
  await mkdir(join(folder, 'data.new', 'base'), { recursive: true });
  const first = await start(folder);
  await query(first.url, 'create table kept (id int)');
  await first.stop();
  await expect(query(first.url, 'select 1')).rejects.toThrow('ECONNREFUSED');

  const second = await start(folder);
  expect(second.url).toBe(first.url);
  expect(await query(second.url, 'select count(*)::int from kept')).toEqual([0]);
});

test('a Postgres left running by a crashed start is reused with its connections', async () => {
  const folder = await closedFolder();
  const left = await start(folder);
  const client = new Client({ connectionString: left.url });
  await client.connect();
  const pid = await query(left.url, 'select pg_postmaster_start_time()');

  const taken = await start(folder);
  expect(await query(taken.url, 'select pg_postmaster_start_time()')).toEqual(pid);
  expect((await client.query('select 1')).rowCount).toBe(1);
  await client.end();
  await taken.stop();
  await expect(query(left.url, 'select 1')).rejects.toThrow('ECONNREFUSED');
});

test('if its port is in use it listens on another one', async () => {
  const folder = await closedFolder();
  const first = await start(folder);
  await first.stop();
  const other = createServer().listen(Number(new URL(first.url).port), LOOPBACK);
  cleanups.push(() => other.close());

  const second = await start(folder);
  expect(new URL(second.url).port).not.toBe(new URL(first.url).port);
  expect(await query(second.url, 'select 1')).toEqual([1]);
});

test('it listens on the loopback interface only, requires passwords, and the core is not a superuser', async () => {
  const folder = await closedFolder();
  const { url, gatewayUrl } = await start(folder);
  expect(await query(url, 'show listen_addresses')).toEqual([LOOPBACK]);
  expect(await query(url, 'select rolsuper from pg_roles where rolname = current_user')).toEqual([false]);
  const wrong = new URL(url);
  wrong.password = new URL(gatewayUrl).password;
  await expect(query(wrong.href, 'select 1')).rejects.toThrow('password authentication failed');
  expect((await stat(join(folder, 'password'))).mode & 0o777).toBe(0o600);
});

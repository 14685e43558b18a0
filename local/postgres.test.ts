import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chown, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { afterEach, expect, test, vi } from 'vitest';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { LOOPBACK } from './free-port.ts';
import { type LocalPostgres, startPostgres } from './postgres.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  vi.unstubAllEnvs();
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

  // For the shell's own programs; this Postgres has no TLS.
  vi.stubEnv('PGSSLMODE', 'require');
  const second = await start(folder);
  expect(second.url).toBe(first.url);
  expect(await query(second.url, 'select count(*)::int from kept')).toEqual([0]);
});

test.runIf(process.getuid?.() === 0)('root runs the Postgres of another user as that user, who keeps it', async () => {
  const folder = await closedFolder();
  await (await start(folder)).stop();
  const user = { uid: 12_345, gid: 12_345 };
  await promisify(execFile)('chown', ['-R', `${user.uid}:${user.gid}`, dirname(folder)]);
  const { url } = await start(folder);
  expect(await query(url, 'select 1')).toEqual([1]);
  for (const name of ['', 'password', 'data', 'data/postgresql.conf', 'data/postmaster.pid', 'postgres.log'])
    expect(await stat(join(folder, name)), name).toMatchObject(user);
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

async function pidIn(folder: string): Promise<number> {
  return Number((await readFile(join(folder, 'data/postmaster.pid'), 'utf8')).split('\n')[0]);
}

test('a Postgres that dies says so, with the end of its log', async () => {
  const folder = await closedFolder();
  const postgres = await start(folder);
  const ended = postgres.ended();
  process.kill(await pidIn(folder), 'SIGKILL');
  expect(await ended).toMatch(/^Postgres ended\. The end of .*postgres\.log:\n.*database system is ready/s);
});

test('a postmaster.pid with the id of another program is a sentence that names the file', async () => {
  const folder = await closedFolder();
  const stopped = await start(folder);
  await stopped.stop();
  const { uid, gid } = await stat(join(folder, 'data'));
  const other = spawn('sleep', ['60'], { uid, gid });
  cleanups.push(() => other.kill());
  const file = join(folder, 'data/postmaster.pid');
  await writeFile(file, `${other.pid}\n${join(folder, 'data')}\n`);
  await chown(file, uid, gid);
  await expect(start(folder)).rejects.toThrow(
    `Postgres can't be started: ${file} names process ${other.pid}, which does`,
  );
  await rm(file);
  await start(folder);
});

test.runIf(existsSync('/dev/full'))('a full disk is a sentence that names the file', async () => {
  const folder = await closedFolder();
  await (await start(folder)).stop();
  const path = join(folder, 'data/postgresql.conf');
  await symlink('/dev/full', `${path}.new`);
  await expect(start(folder)).rejects.toThrow(new OperatorError(`${path} can't be written: ENOSPC.`));
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

import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { openDatabase } from '../../src/db/database.ts';
import { ormTransaction } from '../../src/db/orm-transaction.ts';
import { entities } from '../../src/entities.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { startTcpProxy } from '../../test/harness/tcp-proxy.ts';
import { connectionOptions } from './connection-options.ts';
import { transaction, withConnection } from './sql.ts';
import { isConnectTimeout, isRolledBack, isUnavailable, mustReconnect } from './unavailable.ts';

const MISSING = join(tmpdir(), 'signpost-no-such-folder');

test('a Unix socket that does not exist means that Postgres is unavailable', async () => {
  const client = new pg.Client({ host: MISSING });
  const error: unknown = await client.connect().catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: 'ENOENT' });
  expect(isUnavailable(error)).toBe(true);
});

test('a missing file does not mean that Postgres is unavailable, not even as the cause of another error', async () => {
  const error: unknown = await readFile(join(MISSING, 'file')).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: 'ENOENT' });
  expect(isUnavailable(error)).toBe(false);
  expect(isUnavailable(new Error('an archive could not be read', { cause: error }))).toBe(false);
});

test.each([
  ['one host', 1, ''],
  ['each of several hosts', 2, '&target_session_attrs=read-write'],
])('a connection that %s did not accept in time means that Postgres is unavailable', async (_, hosts, parameters) => {
  const { url } = await freshDatabase();
  const silent = await Promise.all(Array.from({ length: hosts }, () => startTcpProxy(url)));
  for (const proxy of silent) proxy.hang();
  const named = silent.map((proxy) => new URL(proxy.url).host).join();
  const options = connectionOptions(`postgres://signpost@${named}/signpost?sslmode=disable${parameters}`);
  const client = new options.Client({ ...options, connectionTimeoutMillis: 200 });
  const error: unknown = await client.connect().catch((reason: unknown) => reason);
  expect(error).toSatisfy(isUnavailable);
  expect(error).toSatisfy(isConnectTimeout);
});

test('a lock that is not granted within lock_timeout can be retried; other object states cannot', async () => {
  const { url } = await freshDatabase();
  const [holder, other] = [new pg.Client(url), new pg.Client(url)];
  onTestFinished(async () => void (await Promise.all([holder.end(), other.end()])));
  await Promise.all([holder.connect(), other.connect()]);
  await holder.query('begin; lock table codes');
  const refused: unknown = await other
    .query(`set lock_timeout = '10ms'; select from codes`)
    .catch((reason: unknown) => reason);
  expect(refused).toMatchObject({ code: '55P03' });
  expect(isUnavailable(refused)).toBe(true);
  const wrong: unknown = await other.query(`select currval('outbox_id_seq')`).catch((reason: unknown) => reason);
  expect(wrong).toMatchObject({ code: '55000' });
  expect(isUnavailable(wrong)).toBe(false);
});

test.each([
  ['a missing database', undefined, '3D000'],
  ['a closed database', 'allow_connections false', '55000'],
])('%s means that Postgres is unavailable', async (_, options, code) => {
  const url = new URL((await freshDatabase()).url);
  const name = `${url.pathname.slice(1)}_closed`;
  const client = new pg.Client(url.href);
  await client.connect();
  onTestFinished(() => client.end());
  if (options) await client.query(`create database ${name} ${options}`);
  url.pathname = name;
  const error: unknown = await new pg.Client(url.href).connect().catch((reason: unknown) => reason);
  if (options) await client.query(`drop database ${name}`);
  expect(error).toMatchObject({ code });
  expect(isUnavailable(error)).toBe(true);
});

test('a connection whose server has become read-only is replaced, and its error can be retried', async () => {
  const { url } = await freshDatabase();
  const { pool, orm, close } = await openDatabase(url, 2, entities);
  onTestFinished(close);
  const sessionOf = async () => (await pool.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid;
  const write = 'create table written ()';
  const attempts: [string, () => Promise<unknown>][] = [
    ['transaction', () => transaction(pool, (tx) => tx.query(write))],
    ['ormTransaction', () => ormTransaction(orm, (em) => em.execute(write))],
    ['withConnection', () => withConnection(pool, ({ client }) => client.query(write))],
    ['a statement', () => pool.query(write)],
  ];
  for (const [name, attempt] of attempts) {
    // As on a server that has become a standby: nothing else in the session changes.
    await pool.query('set default_transaction_read_only = on');
    const session = await sessionOf();
    const error: unknown = await attempt().catch((reason: unknown) => reason);
    expect(error, name).toMatchObject({ code: '25006' });
    expect(isUnavailable(error), name).toBe(true);
    expect(await sessionOf(), name).not.toBe(session);
  }
});

test('errors wrapped by the ORM are classified by Postgres’s code', async () => {
  const { url } = await freshDatabase();
  const { orm, close } = await openDatabase(url, 2, entities);
  onTestFinished(close);
  const raised = (code: string) => `do $$ begin raise sqlstate '${code}'; end $$`;
  for (const [code, unavailable] of [
    ['57P01', true],
    ['53100', true],
    ['53300', true],
    ['58030', true],
    ['40P01', true],
    ['40001', true],
    ['55P03', true],
    ['25P04', true],
    ['25006', true],
    ['23505', false],
    ['42P01', false],
    ['55000', false],
    ['58P01', false],
  ] as const) {
    const error: unknown = await orm.em.execute(raised(code)).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code });
    expect(error).not.toBeInstanceOf(pg.DatabaseError);
    expect(isUnavailable(error), code).toBe(unavailable);
  }
});

test('a panic of Postgres means that it is unavailable, and that its connection is lost', () => {
  const error = Object.assign(new Error('stuck spinlock detected'), { severity: 'PANIC', code: 'XX000' });
  expect(isUnavailable(error)).toBe(true);
  expect(mustReconnect(error)).toBe(true);
});

test('any error of a statement means that it was rolled back', () => {
  const failed = (severity: string, code: string) => Object.assign(new Error('…'), { severity, code });
  for (const code of ['23505', '53100', '54000', 'XX000']) expect(isRolledBack(failed('ERROR', code)), code).toBe(true);
  expect(isRolledBack(failed('PANIC', 'XX000'))).toBe(false);
  expect(isRolledBack(new Error('Connection terminated'))).toBe(false);
});

test('errors of a server that translates its messages are classified by their code', () => {
  const translated = (severity: string, code: string) => Object.assign(new Error('…'), { severity, code });
  expect(isRolledBack(translated('FEHLER', '23505'))).toBe(true);
  expect(isRolledBack(translated('FATAL', '57P01'))).toBe(false);
  expect(isRolledBack(translated('ВАЖНО', '25P04'))).toBe(false);
  expect(isUnavailable(translated('ВАЖНО', '28P01'))).toBe(true);
});

import pg from 'pg';
import { expect, inject, onTestFinished, test } from 'vitest';
import { postgresProblem } from '../../common/postgres/postgres-problem.ts';
import { OperatorError } from '../../common/runtime/operator-error.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { entities } from '../entities.ts';
import { openDatabase } from './database.ts';
import { expectUsableServer } from './usable-server.ts';

/** What migrating a database fails with. */
async function failureOf(url: string): Promise<unknown> {
  const database = await openDatabase(url, 2, entities);
  try {
    return await database.migrate().catch((error: unknown) => error);
  } finally {
    await database.close();
  }
}

test('an older Postgres is refused', async () => {
  const query = async () => ({ rows: [{ version: '15.18 (Debian)', encoding: 'UTF8', settings: [] }] });
  await expect(expectUsableServer({ query } as never)).rejects.toThrow(
    new OperatorError('DATABASE_URL points to Postgres 15.18 (Debian); Signpost needs Postgres 18.'),
  );
});

test('a database that is not in UTF-8 is refused', async () => {
  const url = new URL((await freshDatabase({ migrated: false })).url);
  const name = `${url.pathname.slice(1)}_ascii`;
  const client = new pg.Client(url.href);
  await client.connect();
  onTestFinished(() => client.end());
  await client.query(`create database ${name} encoding 'SQL_ASCII' locale 'C' template template0`);
  url.pathname = name;
  const failure = await failureOf(url.href);
  await client.query(`drop database ${name} with (force)`);
  expect(failure).toEqual(
    new OperatorError('DATABASE_URL points to a database in SQL_ASCII; Signpost needs one in UTF8.'),
  );
});

test.each([
  { name: 'default_transaction_isolation', value: 'repeatable read', needed: 'read committed' },
  { name: 'DateStyle', value: 'SQL, DMY', needed: 'ISO' },
])('a database with another $name is refused', async ({ name, value, needed }) => {
  const url = (await freshDatabase({ migrated: false })).url;
  const client = new pg.Client(url);
  await client.connect();
  onTestFinished(() => client.end());
  await client.query(`alter database ${new URL(url).pathname.slice(1)} set ${name} = '${value}'`);
  expect(await failureOf(url)).toEqual(
    new OperatorError(
      `${name} is '${value}' in the sessions of DATABASE_URL; Signpost needs '${needed}', the default: reset it for the ` +
        'role, the database and the server.',
    ),
  );
});

test.skipIf(inject('gatewayUrl') === null)('a role without rights is a sentence', async () => {
  const url = new URL(inject('gatewayUrl') ?? '');
  url.pathname = new URL((await freshDatabase({ migrated: false })).url).pathname;
  expect(postgresProblem(await failureOf(url.href))).toMatch(
    /^The role in DATABASE_URL lacks a privilege: permission denied for [^;]*\. Cores need the owner of the database\.$/,
  );
});

test('a missing password is a sentence', async () => {
  const url = new URL(inject('templateUrl'));
  url.password = '';
  const client = new pg.Client(url.href);
  const failure: unknown = await client.connect().catch((error: unknown) => error);
  // Postgres would wait for the password for a minute, and drop no database meanwhile.
  await client.end();
  expect(postgresProblem(failure)).toBe('Postgres needs a password, and DATABASE_URL has none.');
});

test('all addresses of an unreachable host are named', () => {
  const errors = ['::1', '127.0.0.1'].map((address) => new Error(`connect ECONNREFUSED ${address}:5432`));
  const failure = Object.assign(new AggregateError(errors), { code: 'ECONNREFUSED' });
  expect(postgresProblem(failure)).toBe(
    'Postgres is unavailable: connect ECONNREFUSED ::1:5432; connect ECONNREFUSED 127.0.0.1:5432',
  );
});

test('the address of a socket needs no host', async () => {
  const failure = await failureOf('postgres://somebody@/signpost?host=/nowhere');
  expect(postgresProblem(failure)).toBe('Postgres is unavailable: connect ENOENT /nowhere/.s.PGSQL.5432');
});

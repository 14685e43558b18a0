import { expect, test } from 'vitest';
import { OperatorError } from '../runtime/operator-error.ts';
import { readVariables } from '../runtime/variables.ts';
import { databaseUrl, expectUsableUrl, hostsOf, urlsOfHosts } from './database-url.ts';

const ADDRESS = 'DATABASE_URL must be an address: postgres://user:password@host:port/database.';

test.each([
  'postgres://localhost/signpost',
  'postgresql://user:p%40ss@db.internal:5432/signpost?sslmode=verify-full',
  'postgres://db.internal/signpost?sslrootcert=system',
  'postgres://user@[::1]:5432,db.internal/signpost?target_session_attrs=primary',
  'postgres://user@one:5432,two:5433/signpost?sslmode=disable&target_session_attrs=read-write',
  'postgres://user@/signpost?host=/var/run/postgresql',
  'postgres://user@%2Fvar%2Frun%2Fpostgresql/signpost',
])('%s is usable', (url) => {
  expectUsableUrl(url);
  const variables = { DATABASE_URL: { type: databaseUrl, about: '' } };
  expect(readVariables(variables, { DATABASE_URL: url })).toEqual({ DATABASE_URL: url });
});

test.each([
  ['db.internal', ADDRESS],
  ['mysql://db.internal/signpost', ADDRESS],
  ['postgres://user:secret@one:port/signpost', ADDRESS],
  ['postgres://user:secret@one:5432,two:port/signpost?target_session_attrs=primary', ADDRESS],
  ['postgres://user:secret@one:5432,/signpost?target_session_attrs=primary', ADDRESS],
  [
    'postgres://one,two/signpost',
    'DATABASE_URL names several hosts, so it needs target_session_attrs=read-write: the primary is used.',
  ],
  [
    'postgres://one/signpost?target_session_attrs=master',
    'target_session_attrs in DATABASE_URL must be one of any, read-write, read-only, primary, standby.',
  ],
  [
    'postgres:///signpost?host=one,two',
    'DATABASE_URL must name several hosts before its path: postgres://user@one:5432,two:5432/db.',
  ],
  [
    'postgres://one/signpost?sslmode=verify_full',
    'sslmode in DATABASE_URL must be one of disable, no-verify, prefer, require, verify-ca, verify-full.',
  ],
  [
    'postgres://one/signpost?sslmode=require&sslrootcert=system',
    'sslrootcert=system in DATABASE_URL needs sslmode=verify-full.',
  ],
  [
    'postgres://one/signpost?sslrootcert=/nowhere.pem',
    "sslrootcert in DATABASE_URL /nowhere.pem can't be read (ENOENT).",
  ],
])('%s is refused: %s', (url, sentence) => {
  expect(() => expectUsableUrl(url)).toThrow(new OperatorError(sentence));
});

test('each host is put into a URL of its own, with the same login, path and parameters', () => {
  const url = 'postgres://user:a,b@one:5432,[::1],two/db?x=1,2';
  expect(urlsOfHosts(url)).toEqual([
    'postgres://user:a,b@one:5432/db?x=1,2',
    'postgres://user:a,b@[::1]/db?x=1,2',
    'postgres://user:a,b@two/db?x=1,2',
  ]);
  expect(hostsOf(url)).toBe('one:5432,[::1],two');
});

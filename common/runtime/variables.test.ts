import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { OperatorError } from './operator-error.ts';
import { configured } from './read-configured-file.ts';
import {
  addresses,
  integer,
  list,
  oneOf,
  optionalOrigin,
  origins,
  platformUrl,
  port,
  readVariables,
  secret,
  text,
  variablesTable,
  withoutFiles,
} from './variables.ts';

const VARIABLES = {
  PORT: { type: port(8080), about: 'Where it listens.' },
  URL: { type: text('an address'), about: 'Whom it asks.' },
  COUNT: { type: integer(1, 9, 3), about: 'How many.' },
  NAMES: { type: list('a word', /^\w+$/, ['a']), about: 'Which.' },
  LEVEL: { type: oneOf(['low', 'high'], 'low'), about: 'How loud.' },
} as const;

test('unset and empty variables have their defaults', () => {
  expect(readVariables(VARIABLES, { URL: 'x', PORT: '', COUNT: undefined })).toEqual({
    PORT: 8080,
    URL: 'x',
    COUNT: 3,
    NAMES: ['a'],
    LEVEL: 'low',
  });
});

test('set variables are read', () => {
  const env = { PORT: '0', URL: 'y', COUNT: '9', NAMES: 'b, c', LEVEL: 'high' };
  expect(readVariables(VARIABLES, env)).toEqual({ PORT: 0, URL: 'y', COUNT: 9, NAMES: ['b', 'c'], LEVEL: 'high' });
});

test('addresses may be IPv6 addresses in brackets', () => {
  const read = (text: string) => readVariables({ CORES: { type: addresses([]) } }, { CORES: text }).CORES;
  expect(read('core:50051, [2001:db8::1]:65535')).toEqual(['core:50051', '[2001:db8::1]:65535']);
  for (const text of ['[2001:db8::1]', '[2001:db8::1]:65536', '2001:db8::1:50051']) {
    expect(() => read(text)).toThrow('CORES must be host:port; several are separated by commas.');
  }
});

test('every invalid variable is named in a sentence, and no value is repeated', () => {
  const read = () => readVariables(VARIABLES, { PORT: '70000', COUNT: 'hunter2', NAMES: 'a b', LEVEL: 'loud' });
  expect(read).toThrow(OperatorError);
  expect(read).toThrow(
    'PORT must be a port. URL is needed: an address. COUNT must be a whole number from 1 to 9. NAMES must be a word; several are separated by commas. LEVEL must be one of low, high.',
  );
  expect(read).not.toThrow('hunter2');
});

test('a variable may be read from a file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'signpost-variables-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'url');
  writeFileSync(path, 'postgres://from-a-file\n');
  expect(readVariables(VARIABLES, { URL_FILE: path }).URL).toBe('postgres://from-a-file');
  expect(configured({ URL_FILE: '', URL: 'x' }, 'URL')).toBe('x');
  const env = { URL_FILE: path, COUNT: '2', OTHER_FILE: path };
  const all = { URL: 'postgres://from-a-file', URL_FILE: undefined, COUNT: '2', OTHER_FILE: path };
  expect(withoutFiles(env, Object.keys(VARIABLES))).toMatchObject(all);
  expect(() => readVariables(VARIABLES, { URL_FILE: path, URL: 'x' })).toThrow(
    new OperatorError('URL and URL_FILE must not both be set.'),
  );
  const missing = join(folder, 'missing');
  expect(() => readVariables(VARIABLES, { URL_FILE: missing })).toThrow(
    new OperatorError(`URL_FILE ${missing} can't be read (ENOENT).`),
  );
});

test('an address may have a host and a port, and nothing else', () => {
  const variables = { URL: { type: optionalOrigin(''), about: 'Where.' } };
  for (const [given, read] of [
    ['https://sign.example', 'https://sign.example'],
    ['http://[::1]:8080/', 'http://[::1]:8080'],
    ['https://Sign.Example:443', 'https://sign.example'],
    ['https://bücher.example', 'https://xn--bcher-kva.example'],
  ]) {
    expect(readVariables(variables, { URL: given })).toEqual({ URL: read });
  }
  for (const rest of ['/path', '?x=1', '/?x=1', '#f', '\\x', ' ', ':99999']) {
    expect(() => readVariables(variables, { URL: `https://sign.example${rest}` })).toThrow(OperatorError);
  }
  expect(() => readVariables(variables, { URL: 'https://u:p@sign.example' })).toThrow(OperatorError);
});

test('the platform’s own address is by default on the port of a gateway on this machine', () => {
  const variables = { PUBLIC_URL: { type: platformUrl, about: 'Where.' } };
  expect(readVariables(variables, {}).PUBLIC_URL).toBe('http://localhost:8080');
  expect(readVariables(variables, { PORT: '9000' }).PUBLIC_URL).toBe('http://localhost:9000');
  expect(readVariables(variables, { PORT: 'x' }).PUBLIC_URL).toBe('http://localhost:8080');
  const env = { PORT: '9000', PUBLIC_URL: 'https://sign.example' };
  expect(readVariables(variables, env).PUBLIC_URL).toBe('https://sign.example');
});

test('origins are accepted only as browsers send them, which are the ones that can match', () => {
  const variables = { ORIGINS: { type: origins, about: 'Whose.' } };
  const given = 'https://app.example, http://localhost:3000';
  expect(readVariables(variables, { ORIGINS: given }).ORIGINS).toEqual(given.split(', '));
  for (const origin of ['https://app.example/', 'https://app.example:443', 'https://App.example', 'https://::', '*'])
    expect(() => readVariables(variables, { ORIGINS: origin })).toThrow(OperatorError);
});

test('a secret that is too short is rejected', () => {
  const variables = { KEY: { type: secret(32), about: 'Signs.' } };
  expect(() => readVariables(variables, { KEY: Buffer.alloc(31).toString('base64') })).toThrow(OperatorError);
  expect(readVariables(variables, { KEY: Buffer.alloc(32).toString('base64') }).KEY).toHaveLength(32);
});

test('the table has a row for every variable', () => {
  expect(variablesTable(VARIABLES).split('\n')).toHaveLength(2 + Object.keys(VARIABLES).length);
});

import { OperatorError } from '../runtime/operator-error.ts';
import { readConfiguredFile } from '../runtime/read-configured-file.ts';
import { INVALID, type VariableType, variableType } from '../runtime/variables.ts';
import { SESSION_STATES } from './servers.ts';

const SSL_MODES = ['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full'];

/** Parameters of the URL that name PEM files. */
const FILES = ['sslrootcert', 'sslcert', 'sslkey'];

/** Scheme and login, hosts, and everything after them. */
const ADDRESS = /^(postgres(?:ql)?:\/\/(?:[^@/?#]*@)?)([^@/?#]*)((?:[/?][^#]*)?)$/;

/**
 * The URLs of the hosts in a URL of libpq's form (`postgres://user@one:5432,two:5432/db`), in its order: `pg` accepts
 * one host only. Undefined if it is not a Postgres URL.
 */
export function urlsOfHosts(url: string): string[] | undefined {
  const [, start, hosts, end] = ADDRESS.exec(url) ?? [];
  if (start === undefined || hosts === undefined) return undefined;
  const names = hosts.split(',');
  // A single one may be empty: it is that of `?host=/folder`, or the default one.
  if (names.length > 1 && names.includes('')) return undefined;
  const urls = names.map((name) => `${start}${name}${end}`);
  // An empty host can't follow a login in Node's URLs.
  return urls.every((each) => URL.canParse(each.replace('@/', '@localhost/'))) ? urls : undefined;
}

/** The hosts of a usable URL, with their ports and without the login, for messages. */
export function hostsOf(url: string): string {
  return ADDRESS.exec(url)?.[2] ?? '';
}

/** Throws an `OperatorError`, which contains no password, if connections can't be opened by the URL. */
export function expectUsableUrl(url: string): void {
  const urls = urlsOfHosts(url);
  if (urls === undefined) {
    throw new OperatorError('DATABASE_URL must be an address: postgres://user:password@host:port/database.');
  }
  const parameters = new URLSearchParams(url.split('?')[1]);
  const state = parameters.get('target_session_attrs');
  if (state !== null && !Object.hasOwn(SESSION_STATES, state)) {
    const states = Object.keys(SESSION_STATES).join(', ');
    throw new OperatorError(`target_session_attrs in DATABASE_URL must be one of ${states}.`);
  }
  if (state === null && urls.length > 1) {
    throw new OperatorError(
      'DATABASE_URL names several hosts, so it needs target_session_attrs=read-write: the primary is used.',
    );
  }
  if (/,|%2c/i.test(parameters.get('host') ?? '')) {
    throw new OperatorError(
      'DATABASE_URL must name several hosts before its path: postgres://user@one:5432,two:5432/db.',
    );
  }
  const mode = parameters.get('sslmode');
  if (mode !== null && !SSL_MODES.includes(mode)) {
    throw new OperatorError(`sslmode in DATABASE_URL must be one of ${SSL_MODES.join(', ')}.`);
  }
  const trustsPublicCas = parameters.get('sslrootcert') === 'system';
  if (trustsPublicCas && mode !== null && mode !== 'verify-full') {
    throw new OperatorError('sslrootcert=system in DATABASE_URL needs sslmode=verify-full.');
  }
  for (const name of FILES) {
    const path = parameters.get(name);
    if (path && !(trustsPublicCas && name === 'sslrootcert')) readConfiguredFile(`${name} in DATABASE_URL`, path);
  }
}

/** The type of `DATABASE_URL`. */
export const databaseUrl: VariableType<string> = variableType(
  'a Postgres address',
  (url) => {
    expectUsableUrl(url);
    return url;
  },
  INVALID,
);

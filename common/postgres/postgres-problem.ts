import { isUnavailable, LOGIN, NO_DATABASE } from './unavailable.ts';

/** SQLSTATE of a missing privilege. */
const NO_RIGHT = '42501';

/** Node's and OpenSSL's codes of a certificate that is not accepted. */
const CERTIFICATE = /CERT|^UNABLE_TO_|^ERR_TLS_/;

/** A certificate of another host. */
const OTHER_NAME = 'ERR_TLS_CERT_ALTNAME_INVALID';

/** pg's message when `sslmode` asks for TLS. */
const NO_TLS = 'The server does not support SSL connections';

/** pg's messages when Postgres asks for a password and there is none, or an empty one. */
const NO_PASSWORD = /client password must be a (non-empty )?string/;

/**
 * A sentence for the operator about why connections to Postgres can't be opened at start; undefined for other errors.
 */
export function postgresProblem(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code = '' } = error as NodeJS.ErrnoException;
  const message = messageOf(error);
  if (LOGIN.test(code)) return `Postgres refuses the login in DATABASE_URL: ${message}`;
  if (code === NO_DATABASE) return `DATABASE_URL names a database that Postgres does not have: ${message}`;
  if (isUnavailable(error)) return `Postgres is unavailable: ${message}`;
  // The ORM puts the statement before the message.
  if (code === NO_RIGHT)
    return `The role in DATABASE_URL lacks a privilege: ${message.split(' - ').at(-1)}. Cores need the owner of the database.`;
  if (message === NO_TLS) return 'Postgres offers no TLS, which sslmode in DATABASE_URL asks for.';
  if (NO_PASSWORD.test(message)) return 'Postgres needs a password, and DATABASE_URL has none.';
  if (CERTIFICATE.test(code)) {
    const advice = code === OTHER_NAME ? '' : ' sslrootcert in DATABASE_URL must name its CA.';
    return `The certificate of Postgres is not accepted: ${message.replace(/\.?$/, '.')}${advice}`;
  }
  return undefined;
}

/** Node's error for a host with several addresses has no message of its own. */
function messageOf(error: Error): string {
  const { errors = [] } = error as Partial<AggregateError>;
  return error.message || errors.map(({ message }) => message).join('; ');
}

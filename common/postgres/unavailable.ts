/**
 * SQLSTATE classes of temporary failures: connection exceptions, transaction rollbacks (deadlock, serialization),
 * insufficient resources, operator intervention (shutdown, failover).
 */
const UNAVAILABLE_CLASSES = new Set(['08', '40', '53', '57']);

/**
 * SQLSTATE classes of errors that end a statement but not its session, whatever their severity is called: data,
 * constraints, transaction rollbacks, syntax and rights, state of an object, exceptions of functions.
 */
const ROLLED_BACK_CLASSES = new Set(['22', '23', '40', '42', '55', 'P0']);

/** SQLSTATE of a lock that was not granted within `lock_timeout`. */
const LOCK_NOT_AVAILABLE = '55P03';

/** SQLSTATE of a transaction that Postgres has rolled back, because it and others waited for each other's locks. */
const DEADLOCK = '40P01';

/** SQLSTATE of a transaction that had not committed when its caller stopped waiting: see `commit-limit.ts`. */
const TRANSACTION_TIMEOUT = '25P04';

/**
 * SQLSTATE of a write on a server that is read-only: a primary that has become a standby behind the same name or
 * pooler. The connection has to be replaced.
 */
const READ_ONLY = '25006';

/** SQLSTATE class of a login that Postgres refuses. */
export const LOGIN = /^28/;

/** SQLSTATE of a database that does not exist. */
export const NO_DATABASE = '3D000';

/** SQLSTATE of a disk that Postgres can't read or write. */
const IO_ERROR = '58030';

/**
 * The severities with which Postgres ends a session: alone, or with all others because it restarts. With another
 * `lc_messages` than English it translates them.
 */
const SESSION_ENDED = new Set(['FATAL', 'PANIC']);

/** None of the servers that `DATABASE_URL` names can be used at the moment. */
export class PostgresUnavailable extends Error {
  override readonly name: string = 'PostgresUnavailable';
}

/** Node's codes of network errors. */
const UNAVAILABLE_CODES = new Set(['ECONNREFUSED', 'ECONNRESET', 'ENOTFOUND', 'EAI_AGAIN', 'ETIMEDOUT', 'EPIPE']);

/** pg's messages for broken connections and connection timeouts; these errors have no code. */
const UNAVAILABLE_MESSAGE =
  /timeout exceeded when trying to connect|timeout expired|Connection terminated|Client has encountered a connection error|not queryable|Query read timeout/;

/** pg's messages for a connection that was not established in time. */
const CONNECT_TIMEOUT_MESSAGE = /timeout exceeded when trying to connect|timeout expired|due to connection timeout/;

/** pg's message for a statement that exceeded its `query_timeout`. */
const QUERY_TIMEOUT_MESSAGE = 'Query read timeout';

/**
 * Whether an error means that a connection has lost its server, that Postgres has ended its session, or that the server
 * is no longer the primary.
 */
export function mustReconnect(error: unknown): error is Error {
  if (isQueryTimeout(error)) return true;
  if (!(error instanceof Error)) return false;
  const { code, severity = '' } = error as { readonly code?: string; readonly severity?: string };
  return SESSION_ENDED.has(severity) || code === READ_ONLY;
}

/** Whether an error means that the server no longer responds on a connection. */
export function isQueryTimeout(error: unknown): error is Error {
  return error instanceof Error && error.message === QUERY_TIMEOUT_MESSAGE;
}

/** Whether an error means that a connection was not established in time. */
export function isConnectTimeout(error: unknown): boolean {
  return error instanceof Error && (CONNECT_TIMEOUT_MESSAGE.test(error.message) || isConnectTimeout(error.cause));
}

/** Whether an error means that Postgres did not grant a lock within `lock_timeout`. */
export function isLockTimeout(error: unknown): boolean {
  return hasCode(error, LOCK_NOT_AVAILABLE);
}

/** Whether an error means that Postgres has rolled back a transaction to end a deadlock, so that it can be repeated. */
export function isDeadlock(error: unknown): boolean {
  return hasCode(error, DEADLOCK);
}

/**
 * Whether an error means that Postgres has rolled back a statement and kept its session, so that nothing of it took
 * effect.
 */
export function isRolledBack(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code = '', severity } = error as { readonly code?: string; readonly severity?: string };
  return severity === 'ERROR' || (severity !== undefined && ROLLED_BACK_CLASSES.has(code.slice(0, 2)));
}

/** Whether an error means that Postgres does not let this program in, which only an operator can change. */
export function isRefusal(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const { code = '' } = error as NodeJS.ErrnoException;
  return LOGIN.test(code) || code === NO_DATABASE;
}

/**
 * Whether an error means that Postgres is temporarily unavailable, so that the same call can succeed later. A running
 * program that is not let in waits like during an outage, as a password may be about to be changed here too.
 */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof PostgresUnavailable) return true;
  const { code = '', syscall, severity } = error as NodeJS.ErrnoException & { readonly severity?: string };
  // Postgres's own errors have a severity. The ORM throws errors of its own classes with the same fields.
  if (severity !== undefined) {
    return (
      // Postgres does not open the session, or has ended it.
      SESSION_ENDED.has(severity) ||
      isRefusal(error) ||
      code === LOCK_NOT_AVAILABLE ||
      code === TRANSACTION_TIMEOUT ||
      code === READ_ONLY ||
      code === IO_ERROR ||
      UNAVAILABLE_CLASSES.has(code.slice(0, 2))
    );
  }
  // The Unix socket of a server that is not running does not exist. Any other missing file is a fault of Signpost
  // itself.
  if (code === 'ENOENT') return syscall === 'connect';
  return UNAVAILABLE_CODES.has(code) || UNAVAILABLE_MESSAGE.test(error.message) || isUnavailable(error.cause);
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

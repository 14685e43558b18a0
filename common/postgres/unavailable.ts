/**
 * SQLSTATE classes that mean "not now": connection exceptions, transactions that gave way to another (deadlock),
 * resources, operator intervention (shutdown, failover).
 */
const AWAY_CLASSES = new Set(['08', '40', '53', '57']);

/** SQLSTATE of a lock that was not granted within `lock_timeout`: the transaction gave way to others. */
export const LOCK_NOT_AVAILABLE = '55P03';

/** SQLSTATE of a transaction that had not committed when its caller stopped waiting: see `commit-limit.ts`. */
const TRANSACTION_TIMEOUT = '25P04';

/** Errors of the network, by Node's code. */
const AWAY_CODES = new Set(['ECONNREFUSED', 'ECONNRESET', 'ENOTFOUND', 'EAI_AGAIN', 'ETIMEDOUT', 'EPIPE']);

/** What pg says of connections that broke, or that it could not get in time; these errors carry no code. */
const AWAY_MESSAGE =
  /timeout exceeded when trying to connect|Connection terminated|Client has encountered a connection error|not queryable|Query read timeout/;

/** What pg says of a statement that took longer than its `query_timeout`. */
const UNANSWERED = 'Query read timeout';

/** Whether an error means that nobody answers on a connection any more. */
export function isUnanswered(error: unknown): error is Error {
  return error instanceof Error && error.message === UNANSWERED;
}

/** Whether an error means that Postgres is away, so that the same call can succeed later. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code = '', syscall, severity } = error as NodeJS.ErrnoException & { readonly severity?: string };
  // Postgres's own errors have a severity. The ORM throws errors of its own classes with the same fields.
  if (severity !== undefined) {
    return code === LOCK_NOT_AVAILABLE || code === TRANSACTION_TIMEOUT || AWAY_CLASSES.has(code.slice(0, 2));
  }
  // The Unix socket of a server that is not running does not exist. Any other missing file is a fault of our own.
  if (code === 'ENOENT') return syscall === 'connect';
  return AWAY_CODES.has(code) || AWAY_MESSAGE.test(error.message) || isUnavailable(error.cause);
}

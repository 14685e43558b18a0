import { DatabaseError } from 'pg';

/**
 * SQLSTATE classes that mean "not now": connection exceptions, transactions that gave way to another (deadlock),
 * resources, operator intervention (shutdown, failover).
 */
const AWAY_CLASSES = new Set(['08', '40', '53', '57']);

/** Errors of the network, by Node's code. */
const AWAY_CODES = new Set(['ECONNREFUSED', 'ECONNRESET', 'ENOTFOUND', 'EAI_AGAIN', 'ETIMEDOUT', 'EPIPE', 'ENOENT']);

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
export function isAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof DatabaseError) return AWAY_CLASSES.has(error.code?.slice(0, 2) ?? '');
  const { code } = error as NodeJS.ErrnoException;
  return (code !== undefined && AWAY_CODES.has(code)) || AWAY_MESSAGE.test(error.message) || isAway(error.cause);
}

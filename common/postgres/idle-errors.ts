import type { Pool } from 'pg';
import type { Logger } from 'pino';
import { throttledReport } from '../runtime/throttled-report.ts';

/**
 * The minimum interval of log lines, in ms: while Postgres restarts, it closes all idle connections again and again.
 */
const LOG_MS = 60_000;

/**
 * Logs broken idle connections of a pool: at once, and then at most once a minute, with their number since the last
 * line. Nothing else has to be done: the pool opens new connections. Without a listener, the error would end the
 * process.
 */
export function logIdleErrors(pool: Pool, logger: Logger): void {
  const report = throttledReport(LOG_MS, (connections, { message, code }: NodeJS.ErrnoException) => {
    // The whole error is not logged: the pool attaches the connection to it, with the key that cancels its statements.
    logger.warn({ connections, reason: message, code }, 'idle connections to Postgres broke');
  });
  pool.on('error', (error) => report(1, error));
  // Between the end of `connect` and the caller's own listener there is none, and one packet may contain both the end
  // of the login and that of the session. What uses the connection then fails.
  pool.on('connect', (client) => client.on('error', () => undefined));
}

import type { Pool } from 'pg';
import type { Logger } from 'pino';
import { throttledReport } from '../runtime/throttled-report.ts';

/** A restart of Postgres ends all idle connections at once, and one that is not back yet ends them again and again. */
const EVERY_MS = 60_000;

/**
 * Logs that idle connections of a pool broke: at once, and then at most once a minute, with how many it was since the
 * last line. Nothing else has to be done: the pool opens new connections. Unheard, the error would end the process.
 */
export function logIdleErrors(pool: Pool, logger: Logger): void {
  const report = throttledReport(EVERY_MS, (connections, { message, code }: NodeJS.ErrnoException) => {
    // The pool hangs the connection on the error, and with it the key that cancels its statements.
    logger.warn({ connections, reason: message, code }, 'idle connections to Postgres broke');
  });
  pool.on('error', (error) => report(1, error));
}

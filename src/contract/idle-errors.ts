import type { Pool } from 'pg';
import type { Logger } from 'pino';

/** A restart of Postgres ends all idle connections at once, and one that is not back yet ends them again and again. */
const EVERY_MS = 60_000;

/**
 * Logs that idle connections of a pool broke: at once, and then at most once a minute, with how many it was since the
 * last line. Nothing else has to be done: the pool opens new connections. Unheard, the error would end the process.
 */
export function logIdleErrors(pool: Pool, logger: Logger): void {
  let quietUntil = Number.NEGATIVE_INFINITY;
  let connections = 0;
  pool.on('error', (error) => {
    connections += 1;
    if (performance.now() < quietUntil) return;
    quietUntil = performance.now() + EVERY_MS;
    // The pool hangs the connection on the error, and with it the key that cancels its statements.
    const { message, code } = error as NodeJS.ErrnoException;
    logger.warn({ connections, reason: message, code }, 'idle connections to Postgres broke');
    connections = 0;
  });
}

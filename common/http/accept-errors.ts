import type { Server } from 'node:net';
import type { Logger } from 'pino';
import { throttledReport } from '../runtime/throttled-report.ts';

/** The minimum interval of log lines, in ms: such connections come in large numbers. */
const EVERY_MS = 60_000;

/**
 * Logs connections that a listening server could not accept (ENOBUFS, ENOMEM) or closed because of its
 * `maxConnections`: at once, and then at most once a minute, with their number since the last line. Without a listener,
 * the error would end the process. Connections for which the process has no file descriptor left cause no event: libuv
 * closes them.
 */
export function logAcceptErrors(server: Server, logger: Logger): void {
  const failed = throttledReport(EVERY_MS, (connections, { code }: NodeJS.ErrnoException) => {
    logger.error({ connections, code }, 'connections could not be accepted');
  });
  const dropped = throttledReport(EVERY_MS, (connections) => {
    logger.warn({ connections, most: server.maxConnections }, 'connections beyond the limit were closed');
  });
  server.on('error', (error) => {
    // An error of `listen` itself is handled by its caller.
    if (server.listening) failed(1, error);
  });
  server.on('drop', () => dropped(1, undefined));
}

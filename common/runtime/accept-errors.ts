import type { Server } from 'node:net';
import type { Logger } from 'pino';
import { throttledReport } from './throttled-report.ts';

/** Where there is one such connection there are many. */
const EVERY_MS = 60_000;

/**
 * Logs that a server which listens could not accept connections (ENOBUFS, ENOMEM), and that it closed those beyond its
 * `maxConnections`: at once, and then at most once a minute, with how many it was since the last line. Unheard, the error
 * would end the process. Of connections for which the process has no descriptor left nobody hears: libuv closes them.
 */
export function logAcceptErrors(server: Server, logger: Logger): void {
  const failed = throttledReport(EVERY_MS, (connections, { code }: NodeJS.ErrnoException) => {
    logger.error({ connections, code }, 'connections could not be accepted');
  });
  const dropped = throttledReport(EVERY_MS, (connections) => {
    logger.warn({ connections, most: server.maxConnections }, 'connections beyond the limit were closed');
  });
  server.on('error', (error) => {
    // Whoever has it listen is told why it can't.
    if (server.listening) failed(1, error);
  });
  server.on('drop', () => dropped(1, undefined));
}

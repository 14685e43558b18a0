import type { Logger } from 'pino';

/**
 * Makes a process that fails unexpectedly log the reason as its last line and exit with code 1, so that its supervisor
 * restarts it: after an uncaught error or an unhandled rejection its state cannot be trusted.
 */
export function exitOnFatalErrors(logger: Logger): void {
  // Node reports unhandled rejections here too.
  process.on('uncaughtException', (error, origin) => {
    logger.fatal({ err: error, origin }, 'the process exits after an unexpected error');
    process.exit(1);
  });
}

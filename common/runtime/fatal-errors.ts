import type { Logger } from 'pino';

/**
 * Has a process that fails unexpectedly log why, as its last line, before it exits with code 1 so that its supervisor
 * starts it again: after an error that nobody caught, or a rejection that nobody handled, its state cannot be trusted.
 */
export function exitOnFatalErrors(logger: Logger): void {
  // Node reports unhandled rejections here too.
  process.on('uncaughtException', (error, origin) => {
    logger.fatal({ err: error, origin }, 'the process exits after an unexpected error');
    process.exit(1);
  });
}

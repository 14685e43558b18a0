import type { Logger } from 'pino';

/**
 * Logs the warnings of Node.js, which it would otherwise print as text, for example about event emitters with more
 * listeners than usual.
 */
export function logWarnings(logger: Logger): void {
  // The one that prints.
  process.removeAllListeners('warning');
  process.on('warning', (warning) => logger.warn({ err: warning }, 'Node.js warns'));
}

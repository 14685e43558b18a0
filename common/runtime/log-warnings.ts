import type { Logger } from 'pino';

/**
 * Logs the warnings of Node.js, which it would otherwise print as text, for example about event emitters with more
 * listeners than usual. Not that a feature is experimental: `node:ffi` is used deliberately.
 */
export function logWarnings(logger: Logger): void {
  // The one that prints.
  process.removeAllListeners('warning');
  process.on('warning', (warning) => {
    if (warning.name !== 'ExperimentalWarning') logger.warn({ err: warning }, 'Node.js warns');
  });
}

import type { Logger } from 'pino';

const METHODS = ['debug', 'error', 'info', 'log', 'trace', 'warn'] as const;

/**
 * Logs what libraries write to the console until the result is disposed of: a log whose every line is JSON has no room
 * for stacks. graphile-worker, for example, prints one when Postgres breaks off while it stops. Of values other than
 * texts and errors, which may contain personal data, nothing is logged.
 */
export function logConsole(logger: Logger): Disposable {
  const original = { ...console };
  for (const method of METHODS) {
    console[method] = (...values: unknown[]) => {
      const text = values.filter((value) => typeof value === 'string').join(' ');
      const err = values.find((value) => value instanceof Error);
      logger.warn({ ...(text && { text }), ...(err && { err }) }, 'a library wrote to the console');
    };
  }
  return { [Symbol.dispose]: () => void Object.assign(console, original) };
}

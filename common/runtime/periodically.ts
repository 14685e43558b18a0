import type { Logger } from 'pino';
import { HOUR_MS } from './durations.ts';
import { throttledFailures } from './throttled-report.ts';

/**
 * Runs `work` at once and then at an interval in ms, but not while it is still running. `what`: its name in the log
 * when it fails. A stop aborts the signal and waits for the current run.
 */
export function periodically(
  intervalMs: number,
  what: string,
  logger: Logger,
  work: (stopping: AbortSignal) => Promise<void>,
): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const reportFailure = throttledFailures((fields) => logger.warn(fields, `${what} failed; it is tried again later`));
  let running: Promise<void> | undefined;
  const start = () => {
    running ??= work(stopping.signal)
      .catch(reportFailure)
      .finally(() => {
        running = undefined;
      });
  };
  start();
  const timer = setInterval(start, intervalMs);
  return {
    async stop() {
      clearInterval(timer);
      stopping.abort();
      await running;
    },
  };
}

/** Runs `work` at once and then every hour. */
export function hourly(
  what: string,
  logger: Logger,
  work: (stopping: AbortSignal) => Promise<void>,
): { stop(): Promise<void> } {
  return periodically(HOUR_MS, what, logger, work);
}

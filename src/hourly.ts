import type { Logger } from 'pino';

const HOUR_MS = 3_600_000;

/** Does `work` at once and then every hour, never twice at a time. `what`: what the log calls it when it fails. */
export function hourly(what: string, logger: Logger, work: () => Promise<void>): { stop(): Promise<void> } {
  let running: Promise<void> = Promise.resolve();
  const start = () => {
    running = running
      .then(work)
      .catch((error: unknown) => logger.warn({ err: error }, `${what} failed; it is tried again in an hour`));
  };
  start();
  const timer = setInterval(start, HOUR_MS);
  return {
    async stop() {
      clearInterval(timer);
      await running;
    },
  };
}

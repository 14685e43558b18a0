import { pause } from '../runtime/pause.ts';
import { repeatUntilStopped } from '../runtime/repeat-until-stopped.ts';
import type { ConsumeOptions, Subscription } from './log.ts';

/** The pause after a failure, in ms. */
export const RETRY_MS = 1_000;
/** The default number of partitions that a subscription handles concurrently. */
export const PARTITIONS_AT_ONCE = 3;
/** The default maximum number of records in one call of a handler. */
export const MAX_RECORDS = 5_000;

/** The subscriptions of a log, which are stopped with it. */
export class Subscriptions {
  readonly #open = new Set<Subscription>();

  add(subscription: Subscription): Subscription {
    this.#open.add(subscription);
    return {
      stop: () => {
        this.#open.delete(subscription);
        return subscription.stop();
      },
    };
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#open].map((subscription) => subscription.stop()));
  }
}

/**
 * Reads until it is stopped, again a second after it has failed or ended. `read` must resolve once its signal is
 * aborted.
 */
export function readUntilStopped(
  read: (signal: AbortSignal) => Promise<void>,
  options: Pick<ConsumeOptions, 'onError'>,
): Subscription {
  return repeatUntilStopped(
    async (signal) => {
      await read(signal);
      await pause(RETRY_MS, signal);
    },
    { retryMs: RETRY_MS, onError: (error) => options.onError?.(error) },
  );
}

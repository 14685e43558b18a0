import { setTimeout as sleep } from 'node:timers/promises';

/** The longest time in ms that a timer can wait, almost 25 days; it would end at once after a longer one. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Waits for `ms`. Like a request, it rejects with the signal's own reason if it is aborted. */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(Math.min(ms, LONGEST_TIMER_MS), undefined, signal && { signal });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}

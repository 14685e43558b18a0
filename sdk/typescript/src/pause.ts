import { setTimeout as sleep } from 'node:timers/promises';

/** Waits for `ms`. Like a request, it rejects with the signal's own reason if it is aborted. */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(ms, undefined, signal && { signal });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}

import { pause } from './pause.ts';

/**
 * Runs `work` again and again until it is stopped, after a failure only once `retryMs` have passed. `work` itself waits
 * while it has nothing to do, and ends soon once its signal is aborted. A stop aborts the signal, calls `onStop`, which
 * ends waits that do not go by the signal, and waits for the current run. A failure of that run is not reported, since
 * mostly the stop has caused it: another process, or the next start, does what it has left.
 */
export function repeatUntilStopped(
  work: (signal: AbortSignal) => Promise<void>,
  { retryMs, onError, onStop }: { retryMs: number; onError(error: unknown): void; onStop?(): Promise<void> | void },
): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const { signal } = stopping;
  const running = (async () => {
    while (!signal.aborted) {
      try {
        await work(signal);
      } catch (error) {
        if (signal.aborted) return;
        onError(error);
        await pause(retryMs, signal);
      }
    }
  })();
  return {
    async stop() {
      stopping.abort();
      await onStop?.();
      await running;
    },
  };
}

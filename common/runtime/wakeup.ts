/** Wakes a loop that waits for work: an auto-reset event, so that no notification between two waits is lost. */
export interface Wakeup {
  /** Ends the current wait, or the next one if there is none. */
  notify(): void;
  /** Resolves when notified, at once if that happened since the last wait, and after `mostMs` at the latest. */
  wait(mostMs?: number): Promise<void>;
}

/** `longestMs`: called for the longest time that a wait may take, in ms. */
export function createWakeup(longestMs: () => number): Wakeup {
  let isNotified = false;
  let endWait = () => {};
  return {
    notify() {
      isNotified = true;
      endWait();
    },
    async wait(mostMs = Number.POSITIVE_INFINITY) {
      if (!isNotified) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, Math.min(mostMs, longestMs()));
          endWait = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      isNotified = false;
    },
  };
}

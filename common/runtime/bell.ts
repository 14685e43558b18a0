/** Wakes a loop that waits for work. */
export interface Bell {
  /** Ends the current wait, or the next one if there is none. */
  ring(): void;
  /** Resolves when the bell rings, at once if it has rung since the last wait, and after `mostMs` at the latest. */
  wait(mostMs?: number): Promise<void>;
}

/** Creates a bell. `longestMs`: called for the longest time that a wait may take, in ms. */
export function createBell(longestMs: () => number): Bell {
  let hasRung = false;
  let wake = () => {};
  return {
    ring() {
      hasRung = true;
      wake();
    },
    async wait(mostMs = Number.POSITIVE_INFINITY) {
      if (!hasRung) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, Math.min(mostMs, longestMs()));
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      hasRung = false;
    },
  };
}

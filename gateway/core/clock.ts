/** The deadline sent while the core's clock is unknown: a time in the past, which the core rejects as too late. */
const LONG_AGO = 0;

/** The best estimate is replaced after this time even by a worse one, in ms: the clock may have been set back. */
const BEST_MS = 10_000;

/** How long an estimate is used at all, in ms. */
const VALID_MS = 60_000;

/** Allows for drift between the clocks (NTP slews by at most 500 ppm: 30 ms) and for timers that fire early, in ms. */
const MARGIN_MS = 50;

/** The cores' clock as estimated from their responses, for the deadlines of calls. */
export interface CoreClock {
  /** Updates the estimate from the `signpost-clock` of a response, if it has one. */
  observe(reading: string | null | undefined): void;
  /** A lower bound of the cores' clock at `localMs` (of `performance.now()`), as a `signpost-commit-by` value. */
  at(localMs: number): string;
}

/**
 * Estimates the clock that all cores share, Postgres's. A response contains a reading from before it arrived, so the
 * clock is ahead of the local one by at least the difference: the latency of a response can only make a deadline too
 * early, never too late. The largest difference is the best estimate.
 */
export function estimateCoreClock(): CoreClock {
  let best: { readonly ahead: number; readonly observedAt: number } | undefined;
  return {
    observe(reading) {
      if (reading === null || reading === undefined) return;
      const now = performance.now();
      const ahead = Number(reading) - now;
      if (!best || ahead >= best.ahead || now - best.observedAt > BEST_MS) best = { ahead, observedAt: now };
    },
    at(localMs) {
      if (!best || performance.now() - best.observedAt > VALID_MS) return String(LONG_AGO);
      return String(Math.floor(localMs + best.ahead - MARGIN_MS));
    },
  };
}

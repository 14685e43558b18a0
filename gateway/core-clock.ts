/** What a core is told when we do not know its clock: a time that has long passed. */
const LONG_AGO = 0;

/** An estimate that is better than all later ones may be wrong, as the clock may have been set back: so long it counts, in ms. */
const BELIEVED_MS = 10_000;

/** How long an estimate is used, in ms. */
const USED_MS = 60_000;

/** What clocks lose on each other meanwhile (NTP slews by at most 500 ppm: 30 ms), and timers that fire too early, in ms. */
const MARGIN_MS = 50;

/** The clock that a deadline is told to the cores in, as far as their answers have told what it says. */
export interface CoreClock {
  /** Takes note of what the clock said when an answer was made. */
  hear(headers: Headers): void;
  /** What the clock will say at `localMs` (of `performance.now()`), never more than that; as `signpost-commit-by`. */
  at(localMs: number): string;
}

/**
 * Follows the clock that all cores share, Postgres's. An answer says what it was before the answer came here, so it is
 * ahead of ours by at least the difference: how long the answer took makes a limit too early, and never too late. The
 * largest difference is the best.
 */
export function followCoreClock(): CoreClock {
  let best: { readonly ahead: number; readonly heardAt: number } | undefined;
  return {
    hear(headers) {
      const told = headers.get('signpost-clock');
      if (told === null) return;
      const now = performance.now();
      const ahead = Number(told) - now;
      if (!best || ahead >= best.ahead || now - best.heardAt > BELIEVED_MS) best = { ahead, heardAt: now };
    },
    at(localMs) {
      if (!best || performance.now() - best.heardAt > USED_MS) return String(LONG_AGO);
      return String(Math.floor(localMs + best.ahead - MARGIN_MS));
    },
  };
}

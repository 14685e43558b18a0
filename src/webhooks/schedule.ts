const MINUTE_S = 60;
const HOUR_S = 3_600;

/** Seconds from each failure to the next attempt. Source: docs/contract.md, "Events". */
const SCHEDULE = [5, 5 * MINUTE_S, 30 * MINUTE_S, ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR_S)];

/** Either way, so that what failed together does not come again together. */
const JITTER = 0.1;

/**
 * Seconds between attempts to an endpoint while it fails, whatever waits for it: a tenth of the time that it has been
 * failing, within these bounds. One that came back is found out within five minutes.
 */
export const PROBE_S = { least: 5, most: 300 } as const;

/** An endpoint that has failed for so long, without one success, is disabled. */
export const HOPELESS_AFTER_MS = 5 * 24 * HOUR_S * 1_000;

/** Seconds until the next attempt after so many that failed; null when the delivery is given up. */
export function retryIn(attempts: number): number | null {
  const seconds = SCHEDULE[attempts - 1];
  return seconds === undefined ? null : seconds * (1 + JITTER * (2 * Math.random() - 1));
}

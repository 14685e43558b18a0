const MINUTE_S = 60;
const HOUR_S = 3_600;

/** Seconds from each failed attempt to the next. Source: docs/contract.md, "Events". */
const SCHEDULE = [5, 5 * MINUTE_S, 30 * MINUTE_S, ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR_S)];

/** Largest deviation, as a share of the delay: deliveries that failed together are not retried together. */
const JITTER = 0.1;

/**
 * Seconds between attempts to a failing endpoint, however many deliveries are pending: a tenth of the time that it has
 * been failing, within these bounds. So an endpoint that works again is noticed within five minutes.
 */
export const PROBE_INTERVAL_S = { min: 5, max: 300 } as const;

/** How long an endpoint may fail without a single success before it is disabled. */
export const DISABLE_AFTER_MS = 5 * 24 * HOUR_S * 1_000;

/** Seconds until the next attempt after so many failed ones; null when the delivery has finally failed. */
export function retryDelay(failures: number): number | null {
  const seconds = SCHEDULE[failures - 1];
  return seconds === undefined ? null : seconds * (1 + JITTER * (2 * Math.random() - 1));
}

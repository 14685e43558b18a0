/** An hour, in ms. */
export const HOUR_MS = 3_600_000;

/** A day of UTC, in ms. */
export const DAY_MS = 24 * HOUR_MS;

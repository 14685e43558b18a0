/** A day, in ms. */
export const DAY_MS = 86_400_000;

/** An hour, in ms. */
export const HOUR_MS = 3_600_000;

/** The UTC day of a time in ms since 1970, `YYYY-MM-DD`. */
export function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

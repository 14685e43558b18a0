import { DAY_MS } from '../../common/runtime/durations.ts';

/** Formatted days by day number: each scan needs its day more than once, and most scans of a poll share one. */
const formatted = new Map<number, string>();

/** Reports may be about any of millions of days. */
const MAX_CACHED = 10_000;

/**
 * The UTC day of a time in ms since 1970, `YYYY-MM-DD`; the year has five digits from 10000 on, as Postgres expects.
 */
export function dayOf(time: number): string {
  const number = Math.floor(time / DAY_MS);
  let day = formatted.get(number);
  if (day === undefined) {
    day = new Date(number * DAY_MS).toISOString().replace(/^\+0|T.*/g, '');
    if (formatted.size >= MAX_CACHED) formatted.clear();
    formatted.set(number, day);
  }
  return day;
}

/** How many of these times, in ms since 1970, fall in each UTC day. */
export function countByDay(times: readonly number[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const time of times) {
    const day = dayOf(time);
    counts.set(day, (counts.get(day) ?? 0) + 1);
  }
  return counts;
}

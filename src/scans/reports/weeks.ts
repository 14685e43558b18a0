import { DAY_MS } from '../../../common/runtime/durations.ts';

/** 5 January 1970, in ms: a Monday. */
const FIRST_MONDAY = 4 * DAY_MS;
const WEEK_MS = 7 * DAY_MS;

/**
 * Days to add to a sum of weeks (`sign` is 1) or to subtract from it (-1). Both ends are included; none if reversed.
 */
export interface Edge {
  readonly since: number;
  readonly until: number;
  readonly sign: 1 | -1;
}

/** A range of days as whole weeks, and the days to add or subtract at both ends; times in ms since 1970. */
export interface Weeks {
  /** The Mondays of the first and the last week; none if reversed. */
  readonly firstWeek: number;
  readonly lastWeek: number;
  readonly edges: readonly [Edge, Edge];
}

/**
 * Splits the days from `from` to `to` (starts of days in ms since 1970, both included) so that at most three days are
 * read at either end: a week of which more than half is included counts as a whole, minus its other days.
 */
export function splitByWeeks(from: number, to: number): Weeks {
  const [monday, lastMonday] = [mondayOf(from), mondayOf(to)];
  const none: Edge = { since: to, until: to - DAY_MS, sign: 1 };
  if (monday === lastMonday) {
    return { firstWeek: to, lastWeek: to - WEEK_MS, edges: [{ since: from, until: to, sign: 1 }, none] };
  }
  const nextMonday = monday + WEEK_MS;
  const sunday = lastMonday + WEEK_MS - DAY_MS;
  const addsFirst = from - monday > 3 * DAY_MS;
  const addsLast = sunday - to > 3 * DAY_MS;
  return {
    firstWeek: addsFirst ? nextMonday : monday,
    lastWeek: addsLast ? lastMonday - WEEK_MS : lastMonday,
    edges: [
      addsFirst
        ? { since: from, until: nextMonday - DAY_MS, sign: 1 }
        : { since: monday, until: from - DAY_MS, sign: -1 },
      addsLast ? { since: lastMonday, until: to, sign: 1 } : { since: to + DAY_MS, until: sunday, sign: -1 },
    ],
  };
}

function mondayOf(day: number): number {
  return day - ((day - FIRST_MONDAY) % WEEK_MS);
}

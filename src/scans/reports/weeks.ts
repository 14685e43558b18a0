import { DAY_MS } from '../days.ts';

/** 5 January 1970, in ms: a Monday. */
const FIRST_MONDAY = 4 * DAY_MS;
const WEEK_MS = 7 * DAY_MS;

/** Days that are added (1) to a sum of weeks, or subtracted (-1); both ends are included, in ms since 1970. */
export interface Edge {
  readonly since: number;
  readonly until: number;
  readonly sign: 1 | -1;
}

/** Days as whole weeks with edges. There is no week if `lastWeek` is before `firstWeek`. */
export interface Weeks {
  /** The Mondays of the first and the last week, in ms since 1970. */
  readonly firstWeek: number;
  readonly lastWeek: number;
  readonly edges: readonly Edge[];
}

/**
 * Splits the days from `from` to `to` (starts of days in ms since 1970, both included) so that at most three days at
 * either end are read besides the weeks: a week of which more than half is asked for counts whole, less its other days.
 */
export function splitByWeeks(from: number, to: number): Weeks {
  const monday = (day: number) => day - ((day - FIRST_MONDAY) % WEEK_MS);
  const [firstMonday, lastMonday] = [monday(from), monday(to)];
  if (firstMonday === lastMonday)
    return { firstWeek: 0, lastWeek: -WEEK_MS, edges: [{ since: from, until: to, sign: 1 }] };
  const edges: Edge[] = [];
  let [firstWeek, lastWeek] = [firstMonday, lastMonday];
  if (from - firstMonday > 3 * DAY_MS) {
    firstWeek += WEEK_MS;
    edges.push({ since: from, until: firstWeek - DAY_MS, sign: 1 });
  } else if (from > firstMonday) {
    edges.push({ since: firstMonday, until: from - DAY_MS, sign: -1 });
  }
  const sunday = lastMonday + WEEK_MS - DAY_MS;
  if (sunday - to > 3 * DAY_MS) {
    lastWeek -= WEEK_MS;
    edges.push({ since: lastMonday, until: to, sign: 1 });
  } else if (sunday > to) {
    edges.push({ since: to + DAY_MS, until: sunday, sign: -1 });
  }
  return { firstWeek, lastWeek, edges };
}

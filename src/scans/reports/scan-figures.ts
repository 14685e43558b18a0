import { type Queryable, run, statement } from '../../../common/postgres/sql.ts';
import { DAY_MS, dayOf, HOUR_MS } from '../days.ts';
import type { Dimension } from '../dimensions.ts';

/** Maximum entries of a breakdown, `other` included. */
const MAX_ENTRIES = 50;

/** Which scans to report on. */
export interface FigureQuery {
  /** UUID. */
  readonly accountId: string;
  /** UUIDs; unset: all codes that were ever scanned. */
  readonly codeIds?: readonly string[];
  /** Start of the first day or hour, in ms since 1970. */
  readonly from: number;
  /** Start of the last day or hour, which is included. */
  readonly to: number;
}

/** Scans and visitors of a day or an hour. */
export interface IntervalFigures {
  /** `YYYY-MM-DD`, or `YYYY-MM-DDTHH:00:00Z`. */
  readonly start: string;
  readonly scans: bigint;
  readonly unique: bigint;
}

/** One entry of a breakdown. */
export interface BreakdownEntry {
  readonly value: string;
  readonly scans: bigint;
}

// `scan_totals_of_account`.
const SCANNED_CODES = statement<{ code_id: string }>(
  'scanned_codes',
  'select code_id from scan_totals where account_id = $1',
);

/** Common start of the statements below; each then reads one range of a primary key per code. */
const CODES = 'unnest($2::uuid[]) as c (code_id)';

const READ_DAYS = statement<{ start: string; scans: string; unique_scans: string }>(
  'read_scan_days',
  `select to_char(day, 'YYYY-MM-DD') as start, sum(scans)::text as scans, sum(unique_scans)::text as unique_scans
   from ${CODES} join scan_days d using (code_id)
   where d.account_id = $1 and d.day between $3 and $4
   group by day`,
);
const READ_HOURS = statement<{ start: string; scans: string; unique_scans: string }>(
  'read_scan_hours',
  `select to_char(hour at time zone 'UTC', 'YYYY-MM-DD"T"HH24:00:00"Z"') as start,
          sum(scans)::text as scans, sum(unique_scans)::text as unique_scans
   from ${CODES} join scan_hours h using (code_id)
   where h.account_id = $1 and h.hour between $3 and $4
   group by hour`,
);
/** Folds entries over the maximum into `other`; an existing `other` is folded first. */
const FOLD = `
   select dimension::text as dimension, case when named then value else 'other' end as value, sum(scans)::text as scans
   from (
     select *, entries <= ${MAX_ENTRIES} or (value <> 'other' and rank < ${MAX_ENTRIES}) as named
     from (
       select *,
         row_number() over (partition by dimension order by value = 'other', scans desc, value) as rank,
         count(*) over (partition by dimension) as entries
       from counted
     ) ranked
   ) named_entries
   group by 1, 2
   order by 1, sum(scans) desc, 2`;
const DAY_VALUES = `
   select dimension, value, sum(v.scans) as scans
   from ${CODES} join scan_values v using (code_id)
   where v.account_id = $1 and v.day between $3 and $4
   group by dimension, value`;
const READ_VALUES = statement<{ dimension: Dimension; value: string; scans: string }>(
  'read_scan_values',
  `with counted as (${DAY_VALUES}) ${FOLD}`,
);
// Partial days are counted from the scans themselves: `scans_of_code`, two ranges per code.
const READ_VALUES_BY_HOUR = statement<{ dimension: Dimension; value: string; scans: string }>(
  'read_scan_values_by_hour',
  `with counted as (
     select dimension, value, sum(scans) as scans
     from (
       ${DAY_VALUES}
       union all
       select scanned.dimension, scanned.value, count(*)
       from ${CODES}
         cross join (values ($5::timestamptz, $6::timestamptz), ($7, $8)) as part (since, until)
         join scans s on s.code_id = c.code_id and s.scanned_at >= part.since and s.scanned_at < part.until
         cross join lateral (
           values ('country'::scan_dimension, s.country), ('device', s.device),
                  ('operating_system', s.operating_system), ('browser', s.browser), ('referrer', s.referrer)
         ) as scanned (dimension, value)
       where s.account_id = $1
       group by scanned.dimension, scanned.value
     ) parts
     group by dimension, value
   ) ${FOLD}`,
);

/** Every day of the window, zeros included, oldest first. */
export async function dayFigures(on: Queryable, query: FigureQuery): Promise<IntervalFigures[]> {
  const { accountId, from, to } = query;
  const rows = await run(on, READ_DAYS, [accountId, await codesOf(on, query), dayOf(from), dayOf(to)]);
  return withZeros(rows, starts(from, to, DAY_MS, dayOf));
}

/** Every hour of the window, zeros included, oldest first. */
export async function hourFigures(on: Queryable, query: FigureQuery): Promise<IntervalFigures[]> {
  const { accountId, from, to } = query;
  const rows = await run(on, READ_HOURS, [accountId, await codesOf(on, query), new Date(from), new Date(to)]);
  return withZeros(
    rows,
    starts(from, to, HOUR_MS, (time) => `${new Date(time).toISOString().slice(0, 13)}:00:00Z`),
  );
}

/** A breakdown per dimension. */
export type Breakdowns = Record<Dimension, BreakdownEntry[]>;

/** Breakdowns of whole days: most scans first, at most 50 entries, the rest folded into `other`. */
export async function dayBreakdowns(on: Queryable, query: FigureQuery): Promise<Breakdowns> {
  const { accountId, from, to } = query;
  return byDimension(await run(on, READ_VALUES, [accountId, await codesOf(on, query), dayOf(from), dayOf(to)]));
}

/** The same for a window of hours. */
export async function hourBreakdowns(on: Queryable, query: FigureQuery): Promise<Breakdowns> {
  const { accountId, from, to } = query;
  const end = to + HOUR_MS;
  const firstDay = Math.ceil(from / DAY_MS) * DAY_MS;
  const lastDay = Math.floor(end / DAY_MS) * DAY_MS;
  // A window inside one day has no whole day and is a single part.
  const parts = firstDay > lastDay ? [from, end, end, end] : [from, firstDay, lastDay, end];
  return byDimension(
    await run(on, READ_VALUES_BY_HOUR, [
      accountId,
      await codesOf(on, query),
      dayOf(firstDay),
      dayOf(lastDay - DAY_MS),
      ...parts.map((time) => new Date(time)),
    ]),
  );
}

async function codesOf(on: Queryable, { accountId, codeIds }: FigureQuery): Promise<readonly string[]> {
  return codeIds ?? (await run(on, SCANNED_CODES, [accountId])).map(({ code_id }) => code_id);
}

function byDimension(rows: readonly { dimension: Dimension; value: string; scans: string }[]): Breakdowns {
  const breakdowns: Breakdowns = { country: [], device: [], operating_system: [], browser: [], referrer: [] };
  for (const { dimension, value, scans } of rows) breakdowns[dimension].push({ value, scans: BigInt(scans) });
  return breakdowns;
}

function starts(from: number, to: number, step: number, name: (time: number) => string): string[] {
  return Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, index) => name(from + index * step));
}

function withZeros(
  rows: readonly { start: string; scans: string; unique_scans: string }[],
  all: readonly string[],
): IntervalFigures[] {
  const known = new Map(rows.map((row) => [row.start, row]));
  return all.map((start) => {
    const row = known.get(start);
    return { start, scans: BigInt(row?.scans ?? 0), unique: BigInt(row?.unique_scans ?? 0) };
  });
}

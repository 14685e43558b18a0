import { type Queryable, run, statement } from '../../../common/postgres/sql.ts';
import { DAY_MS, dayOf, HOUR_MS } from '../days.ts';
import type { Dimension } from '../recording/tally.ts';

/** Most entries of a breakdown, `other` included. */
const ENTRIES = 50;

/** Which scans: of which codes of an account, of which days. */
export interface Asked {
  /** UUID. */
  readonly accountId: string;
  /** UUIDs; all codes that were ever scanned when it is missing. */
  readonly codeIds?: readonly string[];
  /** First moment of the first day or hour, in ms since 1970. */
  readonly from: number;
  /** First moment of the last day or hour, which is included. */
  readonly to: number;
}

/** Scans and visitors of a day or an hour. */
export interface IntervalFigures {
  /** `YYYY-MM-DD`, or `YYYY-MM-DDTHH:00:00Z`. */
  readonly start: string;
  readonly scans: bigint;
  readonly unique: bigint;
}

/** One value's part of a breakdown. */
export interface ShareFigures {
  readonly value: string;
  readonly scans: bigint;
}

// `scan_totals_of_account`.
const SCANNED_CODES = statement<{ code_id: string }>(
  'scanned_codes',
  'select code_id from scan_totals where account_id = $1',
);

/** What the statements below start from; each then reads a range of a primary key for each code. */
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
/** What exceeds the most entries is folded, and what is called `other` already is folded first. */
const FOLD = `
   select dimension::text as dimension, case when named then value else 'other' end as value, sum(scans)::text as scans
   from (
     select *, entries <= ${ENTRIES} or (value <> 'other' and place < ${ENTRIES}) as named
     from (
       select *,
         row_number() over (partition by dimension order by value = 'other', scans desc, value) as place,
         count(*) over (partition by dimension) as entries
       from counted
     ) placed
   ) chosen
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
// The parts of days come from the scans themselves: `scans_of_code`, two ranges for each code.
const READ_VALUES_BY_HOUR = statement<{ dimension: Dimension; value: string; scans: string }>(
  'read_scan_values_by_hour',
  `with counted as (
     select dimension, value, sum(scans) as scans
     from (
       ${DAY_VALUES}
       union all
       select told.dimension, told.value, count(*)
       from ${CODES}
         cross join (values ($5::timestamptz, $6::timestamptz), ($7, $8)) as part (since, until)
         join scans s on s.code_id = c.code_id and s.scanned_at >= part.since and s.scanned_at < part.until
         cross join lateral (
           values ('country'::scan_dimension, s.country), ('device', s.device),
                  ('operating_system', s.operating_system), ('browser', s.browser), ('referrer', s.referrer)
         ) as told (dimension, value)
       where s.account_id = $1
       group by told.dimension, told.value
     ) parts
     group by dimension, value
   ) ${FOLD}`,
);

/** Every day of the window, zeros included, oldest first. */
export async function dayFigures(on: Queryable, asked: Asked): Promise<IntervalFigures[]> {
  const { accountId, from, to } = asked;
  const rows = await run(on, READ_DAYS, [accountId, await codesOf(on, asked), dayOf(from), dayOf(to)]);
  return filled(rows, starts(from, to, DAY_MS, dayOf));
}

/** Every hour of the window, zeros included, oldest first. */
export async function hourFigures(on: Queryable, asked: Asked): Promise<IntervalFigures[]> {
  const { accountId, from, to } = asked;
  const rows = await run(on, READ_HOURS, [accountId, await codesOf(on, asked), new Date(from), new Date(to)]);
  return filled(
    rows,
    starts(from, to, HOUR_MS, (time) => `${new Date(time).toISOString().slice(0, 13)}:00:00Z`),
  );
}

/** A breakdown for each dimension. */
export type Shares = Record<Dimension, ShareFigures[]>;

/** Breakdowns of the window's days: most scans first, at most 50 entries, the rest folded into `other`. */
export async function dayShares(on: Queryable, asked: Asked): Promise<Shares> {
  const { accountId, from, to } = asked;
  return inDimensions(await run(on, READ_VALUES, [accountId, await codesOf(on, asked), dayOf(from), dayOf(to)]));
}

/** The same of the window's hours. */
export async function hourShares(on: Queryable, asked: Asked): Promise<Shares> {
  const { accountId, from, to } = asked;
  const end = to + HOUR_MS;
  const firstDay = Math.ceil(from / DAY_MS) * DAY_MS;
  const lastDay = Math.floor(end / DAY_MS) * DAY_MS;
  // A window inside one day is one part, and has no whole day.
  const parts = firstDay > lastDay ? [from, end, end, end] : [from, firstDay, lastDay, end];
  return inDimensions(
    await run(on, READ_VALUES_BY_HOUR, [
      accountId,
      await codesOf(on, asked),
      dayOf(firstDay),
      dayOf(lastDay - DAY_MS),
      ...parts.map((time) => new Date(time)),
    ]),
  );
}

async function codesOf(on: Queryable, { accountId, codeIds }: Asked): Promise<readonly string[]> {
  return codeIds ?? (await run(on, SCANNED_CODES, [accountId])).map(({ code_id }) => code_id);
}

function inDimensions(rows: readonly { dimension: Dimension; value: string; scans: string }[]): Shares {
  const shares: Shares = { country: [], device: [], operating_system: [], browser: [], referrer: [] };
  for (const { dimension, value, scans } of rows) shares[dimension].push({ value, scans: BigInt(scans) });
  return shares;
}

function starts(from: number, to: number, step: number, name: (time: number) => string): string[] {
  return Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, index) => name(from + index * step));
}

function filled(
  rows: readonly { start: string; scans: string; unique_scans: string }[],
  all: readonly string[],
): IntervalFigures[] {
  const known = new Map(rows.map((row) => [row.start, row]));
  return all.map((start) => {
    const row = known.get(start);
    return { start, scans: BigInt(row?.scans ?? 0), unique: BigInt(row?.unique_scans ?? 0) };
  });
}

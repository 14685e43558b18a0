import { type Queryable, run, statement } from '../../../common/postgres/sql.ts';
import { DAY_MS } from '../../../common/runtime/durations.ts';
import { dayOf } from '../days.ts';
import { DIMENSIONS, type Dimension } from '../dimensions.ts';
import { CODES, type CodeSelection, scannedCodes, scansOf, selecting } from './code-selection.ts';
import { type FigureQuery, hourParts } from './scan-figures.ts';
import { splitByWeeks } from './weeks.ts';

/** Maximum entries of a breakdown, `other` included. */
const MAX_ENTRIES = 50;

/** One entry of a breakdown. */
export interface BreakdownEntry {
  readonly value: string;
  readonly scans: bigint;
}

/** `dimension`: its name or initial. */
interface ValueRow {
  readonly dimension: string;
  readonly value: string;
  readonly scans: string;
}

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
const BY_NAME = `select left(name, 1) as dimension, substr(name, 2) as value, sum(scans) as scans`;

/** Selects the values of a code's days from parameter `since` to `until`, multiplied by parameter `sign`. */
const codeEdge = (since: string, until: string, sign: string) => `
       select v.dimension, v.value, v.scans * ${sign}::integer as scans
       from ${CODES} join scan_values v on v.code_id = c.code_id and v.day between ${since} and ${until}
       where v.account_id = $1`;
/**
 * Indexes: scan_rollups_of_subject, scan_increments_of_code, and the primary key of scan_values. Days of a code are
 * always up to date, so increments count for weeks only. A join with a list of edges would read all days of the code.
 */
const readCodeValues = (codes: CodeSelection) =>
  statement<ValueRow>(
    `scans_read_values_${codes.name}`,
    `with ${selecting(codes)}, counted as (
     ${BY_NAME}
     from (
       select unnest(r.names) as name, unnest(r.counts) as scans
       from ${CODES} join scan_rollups r on r.subject_id = c.code_id and r.days = 7 and r.start between $3 and $4
       where r.account_id = $1
       union all
       select unnest(i.names), unnest(i.counts)
       from ${CODES} cross join lateral (
         select names, counts from scan_increments
         where account_id = $1 and code_id = c.code_id and day >= $3 and day < $4::date + 7 offset 0
       ) i
       union all
       select left(dimension::text, 1) || value, sum(scans)
       from (${codeEdge('$5', '$6', '$7')} union all ${codeEdge('$8', '$9', '$10')}) edges
       group by dimension, value
     ) named
     group by name having sum(scans) <> 0
   ) ${FOLD}`,
  );

/** Like `codeEdge` for the account, whose days are also stored as rows of several values. */
const accountEdge = (since: string, until: string, sign: string) => `
       select unnest(names), unnest(counts) * ${sign}::integer
       from scan_rollups where subject_id = $1 and days = 1 and start between ${since} and ${until}`;
/** Indexes: scan_rollups_of_subject, scan_increments_of_code. */
const readAccountValues = statement<ValueRow>(
  'scans_read_account_values',
  `with counted as (
     ${BY_NAME}
     from (
       select unnest(names) as name, unnest(counts) as scans
       from scan_rollups where subject_id = $1 and days = 7 and start between $2 and $3
       union all ${accountEdge('$4', '$5', '$6')}
       union all ${accountEdge('$7', '$8', '$9')}
       union all
       select unnest(names), unnest(counts) from scan_increments where account_id = $1 and day between $10 and $11
     ) named
     group by name having sum(scans) <> 0
   ) ${FOLD}`,
);
const DAY_VALUES = `
   select dimension, value, sum(v.scans) as scans
   from ${CODES} join scan_values v using (code_id)
   where v.account_id = $1 and v.day between $3 and $4
   group by dimension, value`;
/** Partial days are counted from the scans themselves. Index: scans_of_code, two ranges per code. */
const readValuesByHour = (codes: CodeSelection) =>
  statement<ValueRow>(
    `scans_read_values_by_hour_${codes.name}`,
    `with ${selecting(codes)}, counted as (
     select dimension, value, sum(scans) as scans
     from (
       ${DAY_VALUES}
       union all
       select scanned.dimension, scanned.value, count(*)
       from ${CODES}
         cross join (values ($5::timestamptz, $6::timestamptz), ($7, $8)) as part (since, until)
         cross join ${scansOf('c.code_id')} s
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

/** A breakdown per dimension. */
export type Breakdowns = Record<Dimension, BreakdownEntry[]>;

/** Breakdowns of whole days: most scans first, at most 50 entries, the rest folded into `other`. */
export async function dayBreakdowns(on: Queryable, query: FigureQuery): Promise<Breakdowns> {
  const { accountId, codes } = query;
  const [from, to] = [query.from, query.to].map((time) => Math.floor(time / DAY_MS) * DAY_MS) as [number, number];
  const { firstWeek, lastWeek, edges } = splitByWeeks(from, to);
  const parts = [
    dayOf(firstWeek),
    dayOf(lastWeek),
    ...edges.flatMap(({ since, until, sign }) => [dayOf(since), dayOf(until), sign]),
  ];
  return byDimension(
    await (codes
      ? run(on, readCodeValues(codes), [accountId, codes.id, ...parts])
      : run(on, readAccountValues, [accountId, ...parts, dayOf(from), dayOf(to)])),
  );
}

/** Breakdowns of a window of hours, as `dayBreakdowns`. */
export async function hourBreakdowns(on: Queryable, query: FigureQuery): Promise<Breakdowns> {
  const { accountId, codes = scannedCodes(accountId) } = query;
  return byDimension(await run(on, readValuesByHour(codes), [accountId, codes.id, ...hourParts(query)]));
}

function byDimension(rows: readonly ValueRow[]): Breakdowns {
  const breakdowns: Breakdowns = { country: [], device: [], operating_system: [], browser: [], referrer: [] };
  for (const { dimension, value, scans } of rows) {
    const name = DIMENSIONS.find((each) => each.startsWith(dimension)) as Dimension;
    breakdowns[name].push({ value, scans: BigInt(scans) });
  }
  return breakdowns;
}

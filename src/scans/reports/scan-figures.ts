import { type Queryable, run, statement } from '../../../common/postgres/sql.ts';
import { DAY_MS, HOUR_MS } from '../../../common/runtime/durations.ts';
import { dayOf } from '../days.ts';
import { CODES, type CodeSelection, scannedCodes, selecting } from './code-selection.ts';

/** Which scans to report on. */
export interface FigureQuery {
  /** UUID. */
  readonly accountId: string;
  /** Unset: all codes that were ever scanned. */
  readonly codes?: CodeSelection;
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

/** Figures as Postgres returns them. */
interface IntervalRow {
  readonly start: string;
  readonly scans: string;
  readonly unique_scans: string;
}

/** Index: the primary key of scan_days. */
const readDays = (codes: CodeSelection) =>
  statement<IntervalRow>(
    `scans_read_days_${codes.name}`,
    `with ${selecting(codes)}
   select to_char(day, 'YYYY-MM-DD') as start, sum(scans)::text as scans, sum(unique_scans)::text as unique_scans
   from ${CODES} join scan_days d using (code_id)
   where d.account_id = $1 and d.day between $3 and $4
   group by day`,
  );
/** Indexes: scan_rollups_of_subject, scan_increments_of_code. */
const readAccountDays = statement<IntervalRow>(
  'scans_read_account_days',
  `select to_char(day, 'YYYY-MM-DD') as start, sum(scans)::text as scans, sum(unique_scans)::text as unique_scans
   from (
     select start as day, scans, unique_scans from scan_rollups
     where subject_id = $1 and days = 1 and start between $2 and $3
     union all
     select day, scans, unique_scans from scan_increments where account_id = $1 and day between $2 and $3
   ) counted
   group by day`,
);
/** Index: the primary key of scan_hours. */
const readHours = (codes: CodeSelection) =>
  statement<IntervalRow>(
    `scans_read_hours_${codes.name}`,
    `with ${selecting(codes)}
   select to_char(hour at time zone 'UTC', 'YYYY-MM-DD"T"HH24:00:00"Z"') as start,
          sum(scans)::text as scans, sum(unique_scans)::text as unique_scans
   from ${CODES} join scan_hours h using (code_id)
   where h.account_id = $1 and h.hour between $3 and $4
   group by hour`,
  );
/** Every day of the window, zeros included, oldest first. */
export async function dayFigures(on: Queryable, query: FigureQuery): Promise<IntervalFigures[]> {
  const { accountId, codes, from, to } = query;
  const rows = await (codes
    ? run(on, readDays(codes), [accountId, codes.id, dayOf(from), dayOf(to)])
    : run(on, readAccountDays, [accountId, dayOf(from), dayOf(to)]));
  return withZeros(rows, starts(from, to, DAY_MS, dayOf));
}

/** Every hour of the window, zeros included, oldest first. */
export async function hourFigures(on: Queryable, query: FigureQuery): Promise<IntervalFigures[]> {
  const { accountId, codes = scannedCodes(accountId), from, to } = query;
  const rows = await run(on, readHours(codes), [accountId, codes.id, new Date(from), new Date(to)]);
  return withZeros(
    rows,
    starts(from, to, HOUR_MS, (time) => `${new Date(time).toISOString().slice(0, 13)}:00:00Z`),
  );
}

/** Whether a window of hours consists of whole days. */
export function isWholeDays({ from, to }: Pick<FigureQuery, 'from' | 'to'>): boolean {
  return from % DAY_MS === 0 && (to + HOUR_MS) % DAY_MS === 0;
}

/**
 * The whole days of a window of hours, first and last, and the hours before and after them, each from and until; for
 * parameters of statements that read whole days from their counters and the rest from the scans.
 */
export function hourParts({ from, to }: Pick<FigureQuery, 'from' | 'to'>): (string | Date)[] {
  const end = to + HOUR_MS;
  const firstDay = Math.ceil(from / DAY_MS) * DAY_MS;
  const lastDay = Math.floor(end / DAY_MS) * DAY_MS;
  // A window inside one day has no whole day and is a single part.
  const parts = firstDay > lastDay ? [from, end, end, end] : [from, firstDay, lastDay, end];
  return [dayOf(firstDay), dayOf(lastDay - DAY_MS), ...parts.map((time) => new Date(time))];
}

function starts(from: number, to: number, step: number, name: (time: number) => string): string[] {
  return Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, index) => name(from + index * step));
}

function withZeros(rows: readonly IntervalRow[], all: readonly string[]): IntervalFigures[] {
  const known = new Map(rows.map((row) => [row.start, row]));
  return all.map((start) => {
    const row = known.get(start);
    return { start, scans: BigInt(row?.scans ?? 0), unique: BigInt(row?.unique_scans ?? 0) };
  });
}

import { HOUR_MS } from '../days.ts';
import type { DerivedScan } from './derive.ts';

/** The ways in which scans are broken down, as `scan_dimension` has them. */
export const DIMENSIONS = ['country', 'device', 'operating_system', 'browser', 'referrer'] as const;
export type Dimension = (typeof DIMENSIONS)[number];

/**
 * How many different referrers of one code and day are told apart, by a poll and before one takes no new ones; the rest
 * are `other`. Anybody can make up a referrer: this bounds what reading a code's analytics costs.
 */
export const REFERRERS_A_DAY = 200;

/** How much a code's whole life moves. */
export interface TotalMove {
  readonly codeId: string;
  readonly accountId: string;
  scans: number;
}

/** How much a code's day moves. */
export interface DayMove extends TotalMove {
  /** `YYYY-MM-DD`. */
  readonly day: string;
  unique: number;
}

/** How much a code's hour moves. */
export interface HourMove extends DayMove {
  /** Start of the hour, in ms since 1970. */
  readonly hour: number;
}

/** How much one value of a code's day moves. */
export interface ValueMove extends TotalMove {
  readonly day: string;
  readonly dimension: Dimension;
  readonly value: string;
}

/** The codes' days that a poll moves, and their parts, each once. */
export interface Days {
  readonly days: DayMove[];
  readonly hours: HourMove[];
  readonly values: ValueMove[];
}

/** Every counter that a poll moves, each once. */
export interface Moves {
  readonly totals: readonly TotalMove[];
  /** Days that are known: their parts may be there. */
  readonly known: Days;
  /** The other days, of which nothing is there. */
  readonly fresh: Days;
}

/** What is counted of a code's day on the way. */
interface CodeDay {
  readonly move: DayMove;
  readonly hours: Map<number, HourMove>;
  readonly values: Record<Dimension, Map<string, number>>;
}

/**
 * What newly recorded scans move, in one order that all recorders share: two of them then never wait for each other in
 * a circle. `isFirst` tells whether the scan is its visitor's first on its code and day.
 */
export function tally(
  scans: readonly DerivedScan[],
  isFirst: (scan: DerivedScan) => boolean,
  isKnown: (codeDay: string) => boolean,
): Moves {
  const codeDays = new Map<string, CodeDay>();
  for (const scan of scans) {
    let codeDay = codeDays.get(scan.codeDay);
    if (!codeDay) {
      codeDay = newCodeDay(scan);
      codeDays.set(scan.codeDay, codeDay);
    }
    count(codeDay, scan, isFirst(scan) ? 1 : 0);
  }

  const totals = new Map<string, TotalMove>();
  const known: Days = { days: [], hours: [], values: [] };
  const fresh: Days = { days: [], hours: [], values: [] };
  for (const key of [...codeDays.keys()].sort()) {
    const { move, hours, values } = codeDays.get(key) as CodeDay;
    const { codeId, accountId, day } = move;
    const parts = isKnown(key) ? known : fresh;
    parts.days.push(move);
    for (const hour of [...hours.keys()].sort()) parts.hours.push(hours.get(hour) as HourMove);
    for (const dimension of DIMENSIONS) {
      for (const value of [...values[dimension].keys()].sort()) {
        const scans = values[dimension].get(value) as number;
        parts.values.push({ codeId, accountId, day, dimension, value, scans });
      }
    }
    const total = totals.get(codeId);
    if (total) total.scans += move.scans;
    else totals.set(codeId, { codeId, accountId, scans: move.scans });
  }
  // Codes were put in as their days came: in order.
  return { totals: [...totals.values()], known, fresh };
}

function newCodeDay({ codeId, accountId, day }: DerivedScan): CodeDay {
  return {
    move: { codeId, accountId, day, scans: 0, unique: 0 },
    hours: new Map(),
    values: {
      country: new Map(),
      device: new Map(),
      operating_system: new Map(),
      browser: new Map(),
      referrer: new Map(),
    },
  };
}

function count({ move, hours, values }: CodeDay, scan: DerivedScan, unique: number): void {
  const start = Math.floor(scan.scannedAt / HOUR_MS);
  let hour = hours.get(start);
  if (!hour) {
    const { codeId, accountId, day } = scan;
    hour = { codeId, accountId, day, hour: start * HOUR_MS, scans: 0, unique: 0 };
    hours.set(start, hour);
  }
  for (const moved of [move, hour]) {
    moved.scans++;
    moved.unique += unique;
  }
  for (const dimension of DIMENSIONS) {
    const counts = values[dimension];
    const told = scan[dimension];
    const full = dimension === 'referrer' && counts.size >= REFERRERS_A_DAY && !counts.has(told);
    const value = full ? 'other' : told;
    counts.set(value, (counts.get(value) ?? 0) + 1);
  }
}

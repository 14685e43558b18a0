import { HOUR_MS } from '../../../common/runtime/durations.ts';
import { DIMENSIONS, type Dimension } from '../dimensions.ts';
import type { ScanTarget } from './decode-scan.ts';
import type { DerivedScan } from './derive.ts';

/**
 * How many different hosts of referrers of one code and day are counted separately, within a poll and in total before a
 * poll adds more; the rest count as `other`. Anyone can invent a referrer: this bounds the cost of reading a code's
 * analytics.
 */
export const REFERRERS_A_DAY = 200;
/** Values that stand for the absence of a host: they are always counted, and the limit is one of hosts. */
export const WITHOUT_HOST: ReadonlySet<string> = new Set(['direct', 'unknown', 'other']);

/** Increment of a code's total. */
export interface TotalIncrement {
  readonly codeId: string;
  readonly accountId: string;
  scans: number;
}

/** Increment of a code's day. */
export interface DayIncrement extends TotalIncrement {
  /** `YYYY-MM-DD`. */
  readonly day: string;
  unique: number;
}

/** Increment of a code's hour. */
export interface HourIncrement extends DayIncrement {
  /** Start of the hour, in ms since 1970. */
  readonly hour: number;
}

/** Increment of one breakdown value of a code's day. */
export interface ValueIncrement extends TotalIncrement {
  readonly day: string;
  readonly dimension: Dimension;
  readonly value: string;
}

/** Increment of a code's day by what decided where the scans lead. */
export interface TargetIncrement extends TotalIncrement, ScanTarget {
  readonly day: string;
}

/** Increments of days with their hours, breakdown values and targets, one per counter. */
export interface CodeDayIncrements {
  readonly days: DayIncrement[];
  readonly hours: HourIncrement[];
  readonly values: ValueIncrement[];
  readonly targets: TargetIncrement[];
}

/** All increments of a poll, one per counter. */
export interface CounterIncrements {
  readonly totals: readonly TotalIncrement[];
  /** Days that already have a row; rows of their hours, values and targets may exist. */
  readonly known: CodeDayIncrements;
  /** Days without any row. */
  readonly fresh: CodeDayIncrements;
}

/** Accumulator for a code's day. */
interface CodeDay {
  readonly increment: DayIncrement;
  readonly hours: Map<number, HourIncrement>;
  readonly values: Record<Dimension, Map<string, number>>;
  /** By version, rule and variant; undefined while no scan had a version. */
  targets: Map<string, TargetIncrement> | undefined;
}

/**
 * Sums newly recorded scans into increments, sorted the same way by all recorders so that they do not deadlock.
 * `isFirst`: whether the scan is its visitor's first on its code and day.
 */
export function tally(
  scans: readonly DerivedScan[],
  isFirst: (scan: DerivedScan) => boolean,
  isKnown: (codeDay: string) => boolean,
): CounterIncrements {
  const codeDays = new Map<string, CodeDay>();
  for (const scan of scans) {
    let codeDay = codeDays.get(scan.codeDay);
    if (!codeDay) {
      codeDay = newCodeDay(scan);
      codeDays.set(scan.codeDay, codeDay);
    }
    count(codeDay, scan, isFirst(scan) ? 1 : 0);
  }

  const totals = new Map<string, TotalIncrement>();
  const known: CodeDayIncrements = { days: [], hours: [], values: [], targets: [] };
  const fresh: CodeDayIncrements = { days: [], hours: [], values: [], targets: [] };
  for (const key of [...codeDays.keys()].sort()) {
    const { increment, hours, values, targets } = codeDays.get(key) as CodeDay;
    const { codeId, accountId, day } = increment;
    const parts = isKnown(key) ? known : fresh;
    parts.days.push(increment);
    for (const hour of [...hours.keys()].sort()) parts.hours.push(hours.get(hour) as HourIncrement);
    for (const dimension of DIMENSIONS) {
      for (const value of [...values[dimension].keys()].sort()) {
        const scans = values[dimension].get(value) as number;
        parts.values.push({ codeId, accountId, day, dimension, value, scans });
      }
    }
    if (targets)
      for (const name of [...targets.keys()].sort()) parts.targets.push(targets.get(name) as TargetIncrement);
    const total = totals.get(codeId);
    if (total) total.scans += increment.scans;
    else totals.set(codeId, { codeId, accountId, scans: increment.scans });
  }
  // Totals are in order too: codes were added in the order of their days.
  return { totals: [...totals.values()], known, fresh };
}

function newCodeDay({ codeId, accountId, day }: DerivedScan): CodeDay {
  return {
    increment: { codeId, accountId, day, scans: 0, unique: 0 },
    hours: new Map(),
    values: {
      country: new Map(),
      device: new Map(),
      operating_system: new Map(),
      browser: new Map(),
      referrer: new Map(),
    },
    targets: undefined,
  };
}

function count(codeDay: CodeDay, scan: DerivedScan, unique: number): void {
  const { increment, hours, values } = codeDay;
  const start = Math.floor(scan.scannedAt / HOUR_MS);
  let hour = hours.get(start);
  if (!hour) {
    const { codeId, accountId, day } = scan;
    hour = { codeId, accountId, day, hour: start * HOUR_MS, scans: 0, unique: 0 };
    hours.set(start, hour);
  }
  for (const counter of [increment, hour]) {
    counter.scans++;
    counter.unique += unique;
  }
  for (const dimension of DIMENSIONS) {
    const counts = values[dimension];
    const actual = scan[dimension];
    const value = dimension === 'referrer' && isExcess(actual, counts) ? 'other' : actual;
    counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  if (scan.target) countTarget(codeDay, scan, scan.target);
}

function isExcess(referrer: string, counts: ReadonlyMap<string, number>): boolean {
  if (counts.size < REFERRERS_A_DAY || counts.has(referrer) || WITHOUT_HOST.has(referrer)) return false;
  return counts.size - WITHOUT_HOST.intersection(counts).size >= REFERRERS_A_DAY;
}

function countTarget(codeDay: CodeDay, { codeId, accountId, day }: DerivedScan, target: ScanTarget): void {
  const name = `${target.version}/${target.rule}/${target.variant}`;
  codeDay.targets ??= new Map();
  const counter = codeDay.targets.get(name);
  if (counter) counter.scans++;
  else codeDay.targets.set(name, { codeId, accountId, day, ...target, scans: 1 });
}

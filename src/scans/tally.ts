import { HOUR_MS } from './days.ts';
import type { DerivedScan } from './derive.ts';

/** The ways in which scans are broken down, as `scan_dimension` has them. */
export const DIMENSIONS = ['country', 'device', 'operating_system', 'browser', 'referrer'] as const;
export type Dimension = (typeof DIMENSIONS)[number];

/**
 * How many different referrers of one code and day are told apart, by a poll and before one takes no new ones; the rest
 * are `other`. Anybody can make up a referrer: this bounds what reading a code's analytics costs.
 */
export const REFERRERS_A_DAY = 200;

/** How much a code's hour moves. */
export interface HourMove {
  readonly codeId: string;
  readonly accountId: string;
  readonly day: string;
  /** Start of the hour, ISO 8601. */
  readonly hour: string;
  scans: number;
  unique: number;
}

/** How much one value of a code's day moves. */
export interface ValueMove {
  readonly codeId: string;
  readonly accountId: string;
  readonly day: string;
  readonly dimension: Dimension;
  readonly value: string;
  scans: number;
}

/** How much a code's whole day, or its whole life, moves. */
export interface Move {
  readonly codeId: string;
  readonly accountId: string;
  readonly day: string;
  scans: number;
  unique: number;
}

/**
 * What newly recorded scans move, each counter once and in one order that all recorders share: two of them then never
 * wait for each other in a circle. `isFirst` tells whether the scan is its visitor's first on its code and day.
 */
export function tally(scans: readonly DerivedScan[], isFirst: (scan: DerivedScan) => boolean) {
  const hours = new Map<string, HourMove>();
  const days = new Map<string, Move>();
  const totals = new Map<string, Move>();
  const values = new Map<string, ValueMove>();
  const referrers = new Map<string, number>();
  for (const scan of scans) {
    const { codeId, accountId, day } = scan;
    const unique = isFirst(scan) ? 1 : 0;
    const hour = Math.floor(scan.scannedAt / HOUR_MS);
    const dayKey = `${codeId} ${day}`;
    const hourMove = into(hours, `${codeId} ${hour}`, () => {
      return { codeId, accountId, day, hour: new Date(hour * HOUR_MS).toISOString(), scans: 0, unique: 0 };
    });
    const dayMove = into(days, dayKey, () => ({ codeId, accountId, day, scans: 0, unique: 0 }));
    const total = into(totals, codeId, () => ({ codeId, accountId, day, scans: 0, unique: 0 }));
    for (const move of [hourMove, dayMove, total]) {
      move.scans++;
      move.unique += unique;
    }
    for (const dimension of DIMENSIONS) {
      let value: string = scan[dimension];
      let key = `${dayKey} ${dimension} ${value}`;
      if (dimension === 'referrer' && !values.has(key)) {
        const different = (referrers.get(dayKey) ?? 0) + 1;
        if (different > REFERRERS_A_DAY) {
          value = 'other';
          key = `${dayKey} ${dimension} ${value}`;
        }
        referrers.set(dayKey, different);
      }
      into(values, key, () => ({ codeId, accountId, day, dimension, value, scans: 0 })).scans++;
    }
  }
  return { hours: inOrder(hours), days: inOrder(days), totals: inOrder(totals), values: inOrder(values) };
}

function into<Value>(map: Map<string, Value>, key: string, make: () => Value): Value {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}

function inOrder<Value>(map: Map<string, Value>): Value[] {
  return [...map.keys()].sort().map((key) => map.get(key) as Value);
}

import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { Interval } from '../../../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import { serverNow } from '../../data/clock.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** The window of a report; its days and hours are in UTC. */
export interface Window {
  readonly from: Timestamp;
  readonly to: Timestamp;
}

/** The last `days` days, today included. It stays the same during an hour, so that what was loaded for it is found. */
export function lastDays(days: number, now = serverNow()): Window {
  const hour = now - (now % HOUR_MS);
  const today = hour - (hour % DAY_MS);
  return { from: timestampFromMs(today - (days - 1) * DAY_MS), to: timestampFromMs(hour) };
}

/** Scans of today compared with yesterday's. */
export interface Today {
  /** All of today, the hour that is not over included. */
  readonly scans: number;
  /** Full hours of today: what can be compared. */
  readonly hours: number;
  /** Scans in these hours, today and yesterday. */
  readonly before: { readonly today: number; readonly yesterday: number };
}

/** Compares today with yesterday in a report by hour on `lastDays(2)`. */
export function compareToday(intervals: readonly Interval[]): Today {
  const [yesterday, today] = [intervals.slice(0, 24), intervals.slice(24)];
  const hours = Math.max(0, today.length - 1);
  return {
    scans: scansOf(today),
    hours,
    before: { today: scansOf(today.slice(0, hours)), yesterday: scansOf(yesterday.slice(0, hours)) },
  };
}

export function scansOf(intervals: readonly Interval[]): number {
  return intervals.reduce((sum, { scans }) => sum + Number(scans), 0);
}

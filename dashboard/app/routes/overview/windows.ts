import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { DAY_MS } from '../../../../common/runtime/durations.ts';
import type { Interval } from '../../../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import { serverNow } from '../../data/clock.ts';

/** The window of a report; its days and hours are in UTC. */
export interface Window {
  readonly from: Timestamp;
  readonly to: Timestamp;
}

/**
 * The last `days` days and the rest of today: cores have counted whole days, and would count the scans of others one by
 * one.
 */
export function lastDays(days: number, now = serverNow()): Window {
  const today = now - (now % DAY_MS);
  return { from: timestampFromMs(today - (days - 1) * DAY_MS), to: timestampFromMs(today + DAY_MS - 1) };
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
export function compareToday(intervals: readonly Interval[], now = serverNow()): Today {
  const [yesterday, today] = [intervals.slice(0, 24), intervals.slice(24)];
  const hours = new Date(now).getUTCHours();
  return {
    scans: scansOf(today),
    hours,
    before: { today: scansOf(today.slice(0, hours)), yesterday: scansOf(yesterday.slice(0, hours)) },
  };
}

export function scansOf(intervals: readonly Interval[]): number {
  return intervals.reduce((sum, { scans }) => sum + Number(scans), 0);
}

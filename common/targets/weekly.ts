import type { Weekly } from '../../proto/gen/signpost/targets/v1/policy_pb.ts';

/** ISO days of the week, from 1 for Monday. */
const DAYS: Readonly<Record<string, number>> = { mon: 1, tue: 2, wed: 3, thu: 4, fri: 5, sat: 6, sun: 7 };

/** A result is valid until the next interval begins or ends, but at most this long, in ms. */
const VALID_MS = 12 * 3_600_000;

/** Days before and after the current one that are considered. Two, because zones have skipped whole days. */
const NEIGHBOURS = [-2, -1, 0, 1, 2];

/** Whether a time that recurs every week includes an instant, in ms since 1970. */
export type WeeklyTimes = (at: number) => boolean;

/**
 * Compiles times that recur every week: half-open intervals whose ends are local times in a time zone. Converting a
 * time takes 10 µs, so a result is reused until the next interval begins or ends. Throws a RangeError for an unknown
 * time zone.
 */
export function weeklyTimes({ timeZone, days, from, until }: Weekly): WeeklyTimes {
  const first = Temporal.PlainTime.from(from);
  const last = Temporal.PlainTime.from(until);
  const endsNextDay = Temporal.PlainTime.compare(last, first) <= 0;
  const wanted = new Set(days.map((day) => DAYS[day]));
  // Validates the zone.
  Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(timeZone);
  let holds = false;
  let validFrom = Number.POSITIVE_INFINITY;
  let validUntil = Number.NEGATIVE_INFINITY;

  /** By default, Temporal resolves skipped and repeated times as RFC 5545 does. */
  function instant(date: Temporal.PlainDate, plainTime: Temporal.PlainTime): number {
    return date.toZonedDateTime({ timeZone, plainTime }).epochMilliseconds;
  }

  function evaluate(at: number): void {
    const today = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(timeZone).toPlainDate();
    holds = false;
    validFrom = at;
    validUntil = at + VALID_MS;
    for (const days of NEIGHBOURS) {
      const date = today.add({ days });
      if (!wanted.has(date.dayOfWeek)) continue;
      const start = instant(date, first);
      const end = instant(endsNextDay ? date.add({ days: 1 }) : date, last);
      if (start <= at && at < end) holds = true;
      for (const boundary of [start, end]) if (boundary > at) validUntil = Math.min(validUntil, boundary);
    }
  }

  return (at) => {
    if (at < validFrom || at >= validUntil) evaluate(at);
    return holds;
  };
}

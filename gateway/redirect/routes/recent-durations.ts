/** Recent durations of a recurring operation, for percentiles. */
export interface RecentDurations {
  add(ms: number): void;
  /** The percentile in ms, `share` being 0 to 1; undefined if there is no recent measurement. */
  percentile(share: number): number | undefined;
}

const MAX_DURATIONS = 1_000;
const WINDOW_MS = 15 * 60_000;

/** Keeps at most the last 1,000 durations of the last 15 minutes. */
export function recentDurations(): RecentDurations {
  let durations: { readonly ms: number; readonly at: number }[] = [];
  return {
    add(ms) {
      // A difference between the clocks of two machines could make it negative.
      durations.push({ ms: Math.max(0, ms), at: performance.now() });
      if (durations.length >= 2 * MAX_DURATIONS) durations = durations.slice(-MAX_DURATIONS);
    },
    percentile(share) {
      const since = performance.now() - WINDOW_MS;
      const sorted = durations
        .slice(-MAX_DURATIONS)
        .filter(({ at }) => at >= since)
        .map(({ ms }) => ms)
        .sort((one, other) => one - other);
      return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
    },
  };
}

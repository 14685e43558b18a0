/** The latest times of something that keeps happening. */
export interface RecentTimes {
  add(ms: number): void;
  /** Undefined when nothing happened lately. */
  percentile(share: number): number | undefined;
}

const MOST = 1_000;
const KEPT_MS = 15 * 60_000;

/** Of at most the last thousand, and the last quarter of an hour. */
export function recentTimes(): RecentTimes {
  let times: { readonly ms: number; readonly at: number }[] = [];
  return {
    add(ms) {
      // Clocks of two machines differ.
      times.push({ ms: Math.max(0, ms), at: performance.now() });
      if (times.length >= 2 * MOST) times = times.slice(-MOST);
    },
    percentile(share) {
      const since = performance.now() - KEPT_MS;
      const sorted = times
        .slice(-MOST)
        .filter(({ at }) => at >= since)
        .map(({ ms }) => ms)
        .sort((one, other) => one - other);
      return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
    },
  };
}

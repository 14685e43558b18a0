/**
 * Throttles reports of frequent occurrences: the first is reported at once, and further ones at most every `ms`. `report`
 * gets the number of occurrences since the last report, and the latest one.
 */
export function throttledReport<What>(
  ms: number,
  report: (count: number, latest: What) => void,
): (count: number, what: What) => void {
  let quietUntil = Number.NEGATIVE_INFINITY;
  let unreported = 0;
  return (count, what) => {
    unreported += count;
    if (performance.now() < quietUntil) return;
    quietUntil = performance.now() + ms;
    report(unreported, what);
    unreported = 0;
  };
}

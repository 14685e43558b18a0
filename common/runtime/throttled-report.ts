/**
 * Reports what may happen very often: at once, and then at most every `ms`. `report` is given how many times it was since
 * the last report, and the latest of them.
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

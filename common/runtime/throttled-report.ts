/** The interval of reports about failures that are retried, in ms: Postgres or the log may be unavailable for hours. */
const FAILURES_MS = 60_000;

/**
 * Throttles reports of frequent occurrences: the first is reported at once, and further ones at most every `ms`.
 * `report` gets the number of occurrences since the last report, and the latest one.
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

/**
 * Throttles reports of failures that are retried, to one a minute. `failures`: since the last report; `err`: the
 * latest.
 */
export function throttledFailures(
  report: (fields: { readonly err: unknown; readonly failures: number }) => void,
): (error: unknown) => void {
  const throttled = throttledReport(FAILURES_MS, (failures, err: unknown) => report({ err, failures }));
  return (error) => throttled(1, error);
}

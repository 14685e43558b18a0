/**
 * Boundaries of the buckets of durations, in s. Source: OpenTelemetry's conventions for HTTP, RPC, messaging and
 * databases.
 */
const DURATION_BOUNDARIES = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];

/** Options of a histogram of durations in s. */
export function durations(description: string, explicitBucketBoundaries = DURATION_BOUNDARIES) {
  return { unit: 's', description, advice: { explicitBucketBoundaries } };
}

/** The time since `start`, of `performance.now()`, in s. */
export function secondsSince(start: number): number {
  return (performance.now() - start) / 1_000;
}

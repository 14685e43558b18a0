import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { metrics } from '@opentelemetry/api';

/** Histograms count in ns and utilization is in ms; the metrics are in s. */
const NS = 1e9;
const MS = 1e3;

/** Figures of iterations cover the last one to two of these, in ms, however often and by whom they are collected. */
const WINDOW_MS = 30_000;

/**
 * Measures the duration of this process's event loop iterations, for which every other request has to wait, and the
 * loop's utilization.
 *
 * Iterations have names of their own: `nodejs.eventloop.delay` of OpenTelemetry's conventions is how late a timer fires
 * that is set every 10 ms. Every iteration is measured, so the longest one is never missed, an idle loop shows no delay
 * of 10 ms, and it took 0.5 ms of CPU in three seconds where sampling took 7 ms.
 */
export function measureEventLoop(windowMs = WINDOW_MS): void {
  const meter = metrics.getMeter('signpost.process');
  const iteration = (name: string, description: string) =>
    meter.createObservableGauge(`signpost.eventloop.iteration.${name}`, {
      unit: 's',
      description: `${description} of the last 30 to 60 seconds`,
    });
  const [p50, p99] = [
    iteration('p50', 'Median duration of the event loop iterations'),
    iteration('p99', '99th percentile of the duration of the event loop iterations'),
  ];
  const max = iteration('max', 'Longest event loop iteration');
  const utilization = meter.createObservableGauge('nodejs.eventloop.utilization', {
    unit: '1',
    description: 'Share of the last 30 to 60 seconds in which the event loop was busy',
  });
  const time = meter.createObservableCounter('nodejs.eventloop.time', {
    unit: 's',
    description: 'Time that the event loop was active or idle, by state',
  });

  // Each is reset after two windows, in turn, and the one with more of the past is reported.
  let [older, newer] = [
    monitorEventLoopDelay({ samplePerIteration: true }),
    monitorEventLoopDelay({ samplePerIteration: true }),
  ];
  older.enable();
  newer.enable();
  let [since, next] = [performance.eventLoopUtilization(), performance.eventLoopUtilization()];
  setInterval(() => {
    older.reset();
    [older, newer] = [newer, older];
    [since, next] = [next, performance.eventLoopUtilization()];
  }, windowMs).unref();
  meter.addBatchObservableCallback(
    (result) => {
      const now = performance.eventLoopUtilization();
      result.observe(utilization, performance.eventLoopUtilization(now, since).utilization);
      result.observe(time, now.active / MS, { 'nodejs.eventloop.state': 'active' });
      result.observe(time, now.idle / MS, { 'nodejs.eventloop.state': 'idle' });
      if (older.count === 0) return;
      result.observe(p50, older.percentile(50) / NS);
      result.observe(p99, older.percentile(99) / NS);
      result.observe(max, older.max / NS);
    },
    [p50, p99, max, utilization, time],
  );
}

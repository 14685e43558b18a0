import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { type Attributes, metrics } from '@opentelemetry/api';

/** Histograms count in ns, the metrics in s. */
const NS = 1e9;

/**
 * Measures how long turns of this process's event loop take, which is what every other request has to wait, and how much
 * of the time it is at work. Named as OpenTelemetry's conventions for Node.js name them; each collection begins anew.
 *
 * Every turn counts, not one every 10 ms: the longest is then in it whatever it was, an idle loop has no delay of 10 ms,
 * and it took 0.5 ms of CPU in three seconds where sampling took 7.
 */
export function measureEventLoop(attributes: Attributes = {}): void {
  const meter = metrics.getMeter('signpost.process');
  const delay = (name: string, description: string) =>
    meter.createObservableGauge(`nodejs.eventloop.delay.${name}`, { unit: 's', description });
  const [p50, p99] = [delay('p50', 'Half of the turns took at most'), delay('p99', '99 % of the turns took at most')];
  const max = delay('max', 'The longest turn');
  const utilization = meter.createObservableGauge('nodejs.eventloop.utilization', {
    unit: '1',
    description: 'Share of the time in which the event loop was at work',
  });

  const turns = monitorEventLoopDelay({ samplePerIteration: true });
  turns.enable();
  let before = performance.eventLoopUtilization();
  meter.addBatchObservableCallback(
    (result) => {
      const now = performance.eventLoopUtilization();
      result.observe(utilization, performance.eventLoopUtilization(now, before).utilization, attributes);
      before = now;
      if (turns.count === 0) return;
      result.observe(p50, turns.percentile(50) / NS, attributes);
      result.observe(p99, turns.percentile(99) / NS, attributes);
      result.observe(max, turns.max / NS, attributes);
      turns.reset();
    },
    [p50, p99, max, utilization],
  );
}

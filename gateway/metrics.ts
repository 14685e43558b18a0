import { metrics, type ObservableResult } from '@opentelemetry/api';
import type { ScopeMetrics } from '@opentelemetry/sdk-metrics';
import { durations } from '../common/telemetry/durations.ts';
import { plainHistogram } from '../common/telemetry/plain-histogram.ts';
import type { Telemetry } from '../common/telemetry/start.ts';
import { machineMs } from './clock/machine-ms.ts';
import type { MetricsCollector } from './process/collect-metrics.ts';
import type { MeasureScan, ScanResult } from './redirect/answer/scan-handler.ts';
import type { FollowerStatus } from './redirect/routes/follow-routes.ts';
import type { Shipper } from './redirect/spool/ship-scans.ts';
import type { SpoolStatus } from './redirect/spool/spool.ts';

/** Meters exist once telemetry has started. */
const meter = () => metrics.getMeter('signpost.gateway');

/** The metrics of all processes of a gateway. */
interface ProcessMetrics {
  /** Each with the attribute `process`. */
  collect(): Promise<ScopeMetrics[]>;
  restarted(process: string): void;
  /** To be called before the processes are stopped: they no longer count as not responding. */
  stop(): void;
}

/** Measures whether the processes of a gateway run. `names`: of all of them. */
export function measureProcesses(
  own: Telemetry,
  collector: MetricsCollector,
  names: () => Iterable<string>,
): ProcessMetrics {
  const restarts = new Map<string, number>();
  /** What the processes have answered to the scrape in progress. */
  let scraped: ReturnType<MetricsCollector['collect']> | undefined;
  meter()
    .createObservableCounter('signpost.gateway.process.restarts', {
      unit: '{restart}',
      description: 'Processes that have died and were started again',
    })
    .addCallback((result) => {
      for (const name of names()) result.observe(restarts.get(name) ?? 0, { 'signpost.process': name });
    });
  const responding = meter().createObservableGauge('signpost.gateway.process.responding', {
    unit: '{process}',
    description: '1 for a process that has sent its metrics within two seconds, else 0',
  });
  async function observeResponding(result: ObservableResult): Promise<void> {
    // What is sent by OTLP is measured without a scrape.
    for (const [name, scopes] of await (scraped ?? collector.collect())) {
      result.observe(Number(scopes !== undefined), { 'signpost.process': name });
    }
  }
  responding.addCallback(observeResponding);
  return {
    restarted: (name) => void restarts.set(name, (restarts.get(name) ?? 0) + 1),
    async collect() {
      const { ofProcess } = await import('../common/telemetry/prometheus.ts');
      scraped = collector.collect();
      try {
        const others = await scraped;
        const all = [['main', await own.collect()] as const, ...others];
        return all.flatMap(([name, scopes]) => ofProcess(name, scopes ?? []));
      } finally {
        scraped = undefined;
      }
    },
    stop: () => responding.removeCallback(observeResponding),
  };
}

/** Measures a worker. */
export function measureWorker(status: () => { readonly answered: number; readonly spool: SpoolStatus }): void {
  count('scans.answered', '{scan}', 'Scans that were answered and recorded', () => status().answered);
  count(
    'scans.lost',
    '{scan}',
    'Scans lost because the disk could not be written and memory was full',
    () => status().spool.lost,
  );
  count('spool.failures', '{write}', 'Writes of scans that the disk refused', () => status().spool.failures);
  gauge('spool.held', 'By', 'Scans that wait in memory because the disk can’t be written', () => status().spool.held);
}

/** Boundaries of the buckets of scans' durations, in s: most take less than a millisecond. */
const SCAN_BOUNDARIES = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Measures the answers to scans. */
export function measureScans(): MeasureScan {
  const record = plainHistogram<ScanResult>({
    name: 'signpost.scan.duration',
    unit: 's',
    description: 'Time from reading the request of a scan to its answer, by result',
    attribute: 'signpost.scan.result',
    boundaries: SCAN_BOUNDARIES,
  });
  return (result, ms) => record(result, ms / 1_000);
}

/** Measures the carrier; `change` records how long a change took from the topic into the table, in ms. */
export function measureCarrier({ shipper, routes }: { readonly shipper: Shipper; routes(): FollowerStatus }): {
  change(ms: number): void;
} {
  count('scans.shipped', '{scan}', 'Scans that were published to the log', shipper.shipped);
  gauge('spool.depth', 'By', 'Scans that wait on disk for the log', () => shipper.status().depth);
  const age = () => (shipper.waitingMs() ?? 0) / 1_000;
  gauge('spool.age', 's', 'Age of the oldest scan that waits on disk for the log, at most; 0 if none does', age);
  // A gateway that can't read the topic from its start on knows no time, but its routes are stale all the same.
  const started = machineMs();
  gauge('routes.age', 's', 'Time since the route table last contained its whole topic, or since the start', () => {
    const { complete = started } = routes();
    return (machineMs() - complete) / 1_000;
  });
  const latency = meter().createHistogram(
    'signpost.gateway.routes.change_latency',
    durations('Time that changes took from the topic into the route table'),
  );
  return { change: (ms) => latency.record(ms / 1_000) };
}

type Figure = () => number | undefined;

function count(name: string, unit: string, description: string, figure: Figure): void {
  const counter = meter().createObservableCounter(`signpost.gateway.${name}`, { unit, description });
  counter.addCallback((result) => observe(result, figure));
}

function gauge(name: string, unit: string, description: string, figure: Figure): void {
  const measured = meter().createObservableGauge(`signpost.gateway.${name}`, { unit, description });
  measured.addCallback((result) => observe(result, figure));
}

function observe(result: ObservableResult, figure: Figure): void {
  const value = figure();
  if (value !== undefined) result.observe(value);
}

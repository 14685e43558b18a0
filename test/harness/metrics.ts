/**
 * The part of an OpenTelemetry metrics SDK that tests and benchmarks need: loaded by `node --import`, it collects
 * observable metrics on SIGUSR2 and prints them as a line of JSON.
 */
import {
  type Attributes,
  type BatchObservableCallback,
  createNoopMeter,
  type Meter,
  metrics,
  type Observable,
  type ObservableCallback,
} from '@opentelemetry/api';

/** One printed collection. */
export interface PrintedMetrics {
  readonly pid: number;
  readonly metrics: readonly { readonly name: string; readonly value: number; readonly attributes: Attributes }[];
}

const names = new Map<Observable, string>();
const callbacks: [Observable, ObservableCallback][] = [];
const batchCallbacks: BatchObservableCallback[] = [];

function observable(name: string): Observable {
  const created: Observable = {
    addCallback: (callback) => void callbacks.push([created, callback]),
    removeCallback: () => undefined,
  };
  names.set(created, name);
  return created;
}

const meter: Meter = Object.assign(Object.create(createNoopMeter()), {
  createObservableGauge: observable,
  createObservableCounter: observable,
  addBatchObservableCallback: (callback) => void batchCallbacks.push(callback),
} satisfies Partial<Meter>);
metrics.setGlobalMeterProvider({ getMeter: () => meter });

process.on('SIGUSR2', async () => {
  const observed: PrintedMetrics['metrics'][number][] = [];
  const observe = (metric: Observable, value: number, attributes: Attributes = {}) => {
    observed.push({ name: names.get(metric) ?? '', value, attributes });
  };
  for (const callback of batchCallbacks) await callback({ observe });
  for (const [metric, callback] of callbacks) {
    await callback({ observe: (value, attributes) => observe(metric, value, attributes) });
  }
  process.stdout.write(`${JSON.stringify({ pid: process.pid, metrics: observed } satisfies PrintedMetrics)}\n`);
});

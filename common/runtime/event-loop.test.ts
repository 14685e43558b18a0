import { type BatchObservableCallback, createNoopMeter, metrics, type Observable } from '@opentelemetry/api';
import { afterAll, expect, test } from 'vitest';
import { measureEventLoop } from './event-loop.ts';

const BLOCKED_MS = 60;

const names = new Map<Observable, string>();
let collect: BatchObservableCallback = () => undefined;
metrics.setGlobalMeterProvider({
  getMeter: () =>
    Object.assign(Object.create(createNoopMeter()), {
      createObservableGauge(name: string) {
        const gauge: Observable = { addCallback: () => undefined, removeCallback: () => undefined };
        names.set(gauge, name);
        return gauge;
      },
      addBatchObservableCallback(callback: BatchObservableCallback) {
        collect = callback;
      },
    }),
});
afterAll(() => metrics.disable());

async function collected(): Promise<Record<string, number>> {
  const values: Record<string, number> = {};
  await collect({
    observe(metric, value) {
      values[names.get(metric) ?? ''] = value;
    },
  });
  return values;
}

test('a long event loop iteration is reported as the longest, once', async () => {
  measureEventLoop();
  await turn();
  const until = performance.now() + BLOCKED_MS;
  while (performance.now() < until);
  await turn();
  const first = await collected();
  expect(first['nodejs.eventloop.delay.max']).toBeGreaterThanOrEqual((BLOCKED_MS - 1) / 1_000);
  expect(first['nodejs.eventloop.delay.p50']).toBeLessThanOrEqual(first['nodejs.eventloop.delay.max'] ?? 0);
  expect(first['nodejs.eventloop.utilization']).toBeGreaterThan(0);

  // Nothing has happened since.
  expect(await collected()).toEqual({ 'nodejs.eventloop.utilization': expect.any(Number) });
});

function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 5));
}

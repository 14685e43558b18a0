import { metrics } from '@opentelemetry/api';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { afterAll, expect, test } from 'vitest';
import { pullReader } from '../telemetry/pull-reader.ts';
import { measureEventLoop } from './event-loop.ts';

const BLOCKED_MS = 60;
const WINDOW_MS = 200;

const reader = pullReader();
metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
afterAll(() => metrics.disable());

async function collected(): Promise<Record<string, number>> {
  const { resourceMetrics } = await reader.collect();
  const measured = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
  return Object.fromEntries(
    measured.flatMap(({ descriptor, dataPoints }) =>
      dataPoints.map(({ attributes, value }) => [
        [descriptor.name, ...Object.values(attributes)].join(' '),
        Number(value),
      ]),
    ),
  );
}

test('a long event loop iteration is reported as the longest for one to two windows, however often it is collected', async () => {
  measureEventLoop(WINDOW_MS);
  await pause(5);
  const until = performance.now() + BLOCKED_MS;
  while (performance.now() < until);
  await pause(5);
  for (let collection = 0; collection < 2; collection++) {
    const figures = await collected();
    expect(figures['signpost.eventloop.iteration.max']).toBeGreaterThanOrEqual((BLOCKED_MS - 1) / 1_000);
    expect(figures['signpost.eventloop.iteration.p50']).toBeLessThanOrEqual(
      figures['signpost.eventloop.iteration.max'] ?? 0,
    );
    expect(figures['nodejs.eventloop.utilization']).toBeGreaterThan(0);
    expect(figures['nodejs.eventloop.time active']).toBeGreaterThanOrEqual(BLOCKED_MS / 1_000);
  }
  const longest = async () => (await collected())['signpost.eventloop.iteration.max'] ?? 0;
  await expect.poll(longest, { interval: WINDOW_MS }).toBeLessThan(BLOCKED_MS / 1_000);
});

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

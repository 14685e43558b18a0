import { createRequire } from 'node:module';
import kafkajs from 'kafkajs';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { patchTimers } from './patch-kafkajs-timers.ts';

const brokers = inject('kafkaBrokers');

test.skipIf(brokers === null)('a connection to Kafka that has nothing to do arms no timers', async () => {
  patchTimers();
  const kafka = new kafkajs.Kafka({ brokers: (brokers ?? '').split(','), logLevel: kafkajs.logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  onTestFinished(() => admin.disconnect());
  await admin.describeCluster();

  const timers = vi.spyOn(globalThis, 'setTimeout');
  await new Promise((resolve) => setImmediate(resolve));
  const idle = Promise.withResolvers<void>();
  const interval = setInterval(idle.resolve, 500);
  await idle.promise;
  clearInterval(interval);
  const armed = timers.mock.calls.length;
  timers.mockRestore();
  // Without the patch, some 890 per second.
  expect(armed).toBeLessThan(10);
});

test('a request waits only as long as the broker throttles, although the clock is set back meanwhile', () => {
  patchTimers();
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 1, 12) });
  onTestFinished(() => void vi.useRealTimers());
  const RequestQueue = createRequire(import.meta.url)('kafkajs/src/network/requestQueue');
  const logger = { debug: () => undefined };
  const queue = new RequestQueue({ logger, maxInFlightRequests: null, requestTimeout: 30_000 });
  queue.maybeThrottle(50);
  vi.setSystemTime(Date.UTC(2026, 10, 1, 11));
  const sendRequest = vi.fn();
  queue.push({ entry: { correlationId: 1 }, expectResponse: true, sendRequest });
  vi.advanceTimersByTime(49);
  expect(sendRequest).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(sendRequest).toHaveBeenCalledTimes(1);
});

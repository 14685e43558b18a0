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

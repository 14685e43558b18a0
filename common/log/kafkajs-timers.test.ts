import kafkajs from 'kafkajs';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { mendTimers } from './kafkajs-timers.ts';

const brokers = inject('kafkaBrokers');

test.skipIf(brokers === null)('a connection to Kafka that has nothing to do arms no timers', async () => {
  mendTimers();
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
  // Unmended, some 890 a second.
  expect(armed).toBeLessThan(10);
});

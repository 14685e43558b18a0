import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { periodically } from './periodically.ts';

const INTERVAL_MS = 5;

test('while a run hangs no others are queued, and a stop waits for that run only', async () => {
  const hanging = Promise.withResolvers<void>();
  let runs = 0;
  const periodic = periodically(INTERVAL_MS, 'the work', pino({ level: 'silent' }), () => {
    runs++;
    return hanging.promise;
  });
  let ticks = 0;
  const timer = setInterval(() => ticks++, INTERVAL_MS);
  onTestFinished(() => clearInterval(timer));
  await expect.poll(() => ticks).toBeGreaterThan(5);
  hanging.resolve();
  await periodic.stop();
  expect(runs).toBe(1);
});

test('a run that fails is followed by others', async () => {
  let runs = 0;
  const periodic = periodically(INTERVAL_MS, 'the work', pino({ level: 'silent' }), async () => {
    if (++runs === 1) throw new Error('it failed');
  });
  await expect.poll(() => runs).toBeGreaterThan(2);
  await periodic.stop();
});

test('a stop interrupts a run that goes by the signal', async () => {
  const { promise: interrupted, resolve } = Promise.withResolvers<void>();
  const periodic = periodically(INTERVAL_MS, 'the work', pino({ level: 'silent' }), (stopping) => {
    stopping.addEventListener('abort', () => resolve());
    return interrupted;
  });
  await periodic.stop();
  await interrupted;
});

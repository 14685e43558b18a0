import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { recordingLogger } from '../../test/harness/recording-logger.ts';
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

test('runs that fail are followed by others, and are logged once a minute', async () => {
  const { lines, logger } = recordingLogger();
  let runs = 0;
  const periodic = periodically(INTERVAL_MS, 'the work', logger, async () => {
    if (++runs <= 3) throw new Error('away');
  });
  await expect.poll(() => runs).toBeGreaterThan(4);
  await periodic.stop();
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: 40, msg: 'the work failed; it is tried again later', err: { message: 'away' } },
  ]);
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

import { once } from 'node:events';
import { expect, test } from 'vitest';
import { repeatUntilStopped } from './repeat-until-stopped.ts';

const LONG_MS = 3_600_000;

test('work that fails is reported and repeated after a pause, other work at once', async () => {
  const errors: unknown[] = [];
  const times: number[] = [];
  const done = Promise.withResolvers<void>();
  const repeated = repeatUntilStopped(
    async (signal) => {
      times.push(performance.now());
      if (times.length === 1) throw new Error('away');
      if (times.length < 4) return;
      done.resolve();
      await once(signal, 'abort');
    },
    { retryMs: 50, onError: (error) => errors.push(error) },
  );
  await done.promise;
  await repeated.stop();
  const [first = 0, second = 0] = times;
  // A timer may end up to a millisecond early.
  expect(second - first).toBeGreaterThanOrEqual(49);
  expect(errors).toEqual([new Error('away')]);
  expect(times).toHaveLength(4);
});

test('a stop interrupts the pause after a failure', async () => {
  const failed = Promise.withResolvers<void>();
  const work = () => Promise.reject(new Error('away'));
  const repeated = repeatUntilStopped(work, { retryMs: LONG_MS, onError: () => failed.resolve() });
  await failed.promise;
  await repeated.stop();
});

test('a stop ends waits by its callback, waits for the current run, and does not report that it failed', async () => {
  const errors: unknown[] = [];
  const waiting = Promise.withResolvers<void>();
  const ending = Promise.withResolvers<void>();
  let aborted = false;
  let stopped = false;
  const repeated = repeatUntilStopped(
    async (signal) => {
      await waiting.promise;
      aborted = signal.aborted;
      await ending.promise;
      throw new Error('interrupted');
    },
    { retryMs: LONG_MS, onError: (error) => errors.push(error), onStop: waiting.resolve },
  );
  const stop = repeated.stop().then(() => {
    stopped = true;
  });
  await expect.poll(() => aborted).toBe(true);
  expect(stopped).toBe(false);
  ending.resolve();
  await stop;
  expect(errors).toEqual([]);
});

import { expect, onTestFinished, test, vi } from 'vitest';
import { singleFlight } from './single-flight.ts';

test('callers at the same time share one look-up however long it takes, and later ones its answer for a while', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  let asked = 0;
  const found = Promise.withResolvers<boolean>();
  const healthy = singleFlight(() => {
    asked++;
    return found.promise;
  }, 60);
  const many = () => Array.from({ length: 500 }, healthy);
  const callers = many();
  vi.advanceTimersByTime(10_000);
  callers.push(...many());
  found.resolve(true);
  await Promise.all(callers);
  expect(asked).toBe(1);
  vi.advanceTimersByTime(59);
  await Promise.all(many());
  expect(asked).toBe(1);
  vi.advanceTimersByTime(1);
  await Promise.all(many());
  expect(asked).toBe(2);
});

import { expect, onTestFinished, test, vi } from 'vitest';
import { onTicks, TICK_MS } from './ticks.ts';

test('work is called at its interval, all that is due at the same tick, until it is stopped', () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const called: string[] = [];
  const stopOften = onTicks(TICK_MS, () => called.push('often'));
  vi.advanceTimersByTime(TICK_MS / 2);
  const stopSeldom = onTicks(3 * TICK_MS, () => called.push('seldom'));
  vi.advanceTimersByTime(TICK_MS / 2);
  expect(called.splice(0)).toEqual(['often']);
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(2 * TICK_MS);
  expect(called.splice(0)).toEqual(['often', 'often', 'seldom']);
  stopOften();
  vi.advanceTimersByTime(3 * TICK_MS);
  expect(called.splice(0)).toEqual(['seldom']);
  stopSeldom();
  expect(vi.getTimerCount()).toBe(0);
});

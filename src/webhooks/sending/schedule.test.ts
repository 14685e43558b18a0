import { expect, test } from 'vitest';
import { retryDelay } from './schedule.ts';

test('nine retries follow the contract’s schedule, spread by a tenth, and then none', () => {
  const minutes = [5 / 60, 5, 30, 120, 300, 600, 840, 1_200, 1_440];
  for (const [index, delay] of minutes.entries()) {
    const seconds = Array.from({ length: 50 }, () => retryDelay(index + 1) ?? 0);
    expect(Math.min(...seconds)).toBeGreaterThanOrEqual(delay * 60 * 0.9);
    expect(Math.max(...seconds)).toBeLessThanOrEqual(delay * 60 * 1.1);
    expect(new Set(seconds).size).toBeGreaterThan(1);
  }
  expect(retryDelay(minutes.length + 1)).toBeNull();
});

import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { estimateCoreClock } from './clock.ts';

/** How far Postgres's clock is ahead of this process's, in ms. */
const AHEAD = 1_800_000_000_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** The clock of a response, read `ageMs` ago. */
function answer(ageMs: number, ahead = AHEAD): string {
  return String(Math.floor(performance.now() + ahead - ageMs));
}

describe('the clock of the cores', () => {
  test('is never estimated ahead of itself, however long responses took', () => {
    const answers = fc.record({
      ageMs: fc.integer({ min: 0, max: 30_000 }),
      pauseMs: fc.integer({ min: 0, max: 60_000 }),
    });
    fc.assert(
      fc.property(fc.array(answers, { minLength: 1 }), (given) => {
        const clock = estimateCoreClock();
        for (const { ageMs, pauseMs } of given) {
          clock.observe(answer(ageMs));
          vi.advanceTimersByTime(pauseMs);
          const limit = performance.now() + 30_000;
          expect(Number(clock.at(limit))).toBeLessThan(limit + AHEAD);
        }
      }),
    );
  });

  test('is estimated from the fastest response of the last ten seconds', () => {
    const clock = estimateCoreClock();
    clock.observe(answer(1));
    clock.observe(answer(20_000));
    const limit = performance.now() + 30_000;
    expect(Number(clock.at(limit))).toBeGreaterThan(limit + AHEAD - 100);
    vi.advanceTimersByTime(10_001);
    clock.observe(answer(2));
    expect(Number(clock.at(limit))).toBeGreaterThan(limit + AHEAD - 100);
  });

  test('is estimated correctly within ten seconds of being set back', () => {
    const clock = estimateCoreClock();
    clock.observe(answer(1));
    vi.advanceTimersByTime(10_001);
    clock.observe(answer(1, AHEAD - 3_600_000));
    const limit = performance.now() + 30_000;
    expect(Number(clock.at(limit))).toBeLessThan(limit + AHEAD - 3_600_000);
  });

  test('is unknown before the first response, and a minute after the last', () => {
    const clock = estimateCoreClock();
    expect(clock.at(performance.now() + 30_000)).toBe('0');
    clock.observe(undefined);
    expect(clock.at(performance.now() + 30_000)).toBe('0');
    clock.observe(answer(1));
    vi.advanceTimersByTime(60_001);
    expect(clock.at(performance.now() + 30_000)).toBe('0');
  });
});

import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { followCoreClock } from './core-clock.ts';

/** What Postgres's clock is ahead of this process's, in ms. */
const AHEAD = 1_800_000_000_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** An answer whose clock was read so many ms ago. */
function answer(ageMs: number, ahead = AHEAD): Headers {
  return new Headers({ 'signpost-clock': String(Math.floor(performance.now() + ahead - ageMs)) });
}

describe('the clock of the cores', () => {
  test('is never told later than it is, whatever time answers took', () => {
    const answers = fc.record({
      ageMs: fc.integer({ min: 0, max: 30_000 }),
      pauseMs: fc.integer({ min: 0, max: 60_000 }),
    });
    fc.assert(
      fc.property(fc.array(answers, { minLength: 1 }), (given) => {
        const clock = followCoreClock();
        for (const { ageMs, pauseMs } of given) {
          clock.hear(answer(ageMs));
          vi.advanceTimersByTime(pauseMs);
          const limit = performance.now() + 30_000;
          expect(Number(clock.at(limit))).toBeLessThan(limit + AHEAD);
        }
      }),
    );
  });

  test('is told by the answer that took the shortest of the last ten seconds', () => {
    const clock = followCoreClock();
    clock.hear(answer(1));
    clock.hear(answer(20_000));
    const limit = performance.now() + 30_000;
    expect(Number(clock.at(limit))).toBeGreaterThan(limit + AHEAD - 100);
    vi.advanceTimersByTime(10_001);
    clock.hear(answer(2));
    expect(Number(clock.at(limit))).toBeGreaterThan(limit + AHEAD - 100);
  });

  test('that was set back is followed within ten seconds', () => {
    const clock = followCoreClock();
    clock.hear(answer(1));
    vi.advanceTimersByTime(10_001);
    clock.hear(answer(1, AHEAD - 3_600_000));
    const limit = performance.now() + 30_000;
    expect(Number(clock.at(limit))).toBeLessThan(limit + AHEAD - 3_600_000);
  });

  test('is unknown before the first answer, and a minute after the last', () => {
    const clock = followCoreClock();
    expect(clock.at(performance.now() + 30_000)).toBe('0');
    clock.hear(new Headers());
    expect(clock.at(performance.now() + 30_000)).toBe('0');
    clock.hear(answer(1));
    vi.advanceTimersByTime(60_001);
    expect(clock.at(performance.now() + 30_000)).toBe('0');
  });
});

import { pino } from 'pino';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type HeldFrames, holdFrames } from './held-frames.ts';

/** What the log was told, as counts of scans that were lost. */
let told: number[];
let held: HeldFrames;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
  told = [];
  const logger = pino({ level: 'error' }, { write: (line) => told.push(JSON.parse(line).lost) });
  held = holdFrames(() => {}, logger);
  held.hold(Buffer.alloc(64 * 1024 * 1024), 1);
});
afterEach(() => {
  vi.useRealTimers();
});

function loseTurns(turns: number): void {
  for (let turn = 0; turn < turns; turn++) held.hold(Buffer.alloc(100), 2);
}

test('what is lost is told at once, then at most every ten seconds, and counted to the last one', () => {
  expect(told).toEqual([]);
  loseTurns(1_000);
  expect(told).toEqual([2]);
  expect(held.lost).toBe(2_000);
  vi.advanceTimersByTime(9_999);
  loseTurns(1);
  expect(told).toEqual([2]);
  vi.advanceTimersByTime(1);
  loseTurns(1_000);
  expect(told).toEqual([2, 2_004]);
  expect(held.lost).toBe(4_002);
});

test('when the disk takes all again, the log is told of those that it did not hear of', () => {
  loseTurns(10);
  held.clear();
  expect(told).toEqual([2, 20]);
  held.clear();
  expect(told).toEqual([2, 20]);
});

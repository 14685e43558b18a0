import { pino } from 'pino';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type HeldFrames, holdFrames } from './held-frames.ts';

/** The counts of lost scans that were logged. */
let logged: number[];
let held: HeldFrames;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
  logged = [];
  const logger = pino({ level: 'error' }, { write: (line) => logged.push(JSON.parse(line).lost) });
  held = holdFrames(() => {}, logger);
  held.hold(Buffer.alloc(64 * 1024 * 1024), 1);
});
afterEach(() => {
  vi.useRealTimers();
});

function loseScans(turns: number): void {
  for (let turn = 0; turn < turns; turn++) held.hold(Buffer.alloc(100), 2);
}

test('lost scans are logged at once, then at most every ten seconds, and all are counted', () => {
  expect(logged).toEqual([]);
  loseScans(1_000);
  expect(logged).toEqual([2]);
  expect(held.lost).toBe(2_000);
  vi.advanceTimersByTime(9_999);
  loseScans(1);
  expect(logged).toEqual([2]);
  vi.advanceTimersByTime(1);
  loseScans(1_000);
  expect(logged).toEqual([2, 2_004]);
  expect(held.lost).toBe(4_002);
});

test('when the disk can be written again, the losses not yet logged are logged', () => {
  loseScans(10);
  held.drop(1);
  expect(logged).toEqual([2, 20]);
  held.drop(0);
  expect(logged).toEqual([2, 20]);
});

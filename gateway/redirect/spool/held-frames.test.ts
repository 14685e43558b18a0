import { pino } from 'pino';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type HeldFrames, holdFrames } from './held-frames.ts';

/** As much as may be held. */
const FULL = Buffer.alloc(64 * 1024 * 1024);

/** The counts of lost scans that were logged. */
let logged: number[];
let held: HeldFrames;
/** What was offered, and the function that says that the log has it. */
let offers: { readonly frames: string; readonly accepted: () => void }[];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
  logged = [];
  const logger = pino({ level: 'error' }, { write: (line) => logged.push(JSON.parse(line).lost) });
  offers = [];
  held = holdFrames((frames, accepted) => void offers.push({ frames: frames.toString(), accepted }), logger);
});
afterEach(() => {
  vi.useRealTimers();
});

function loseScans(turns: number): void {
  for (let turn = 0; turn < turns; turn++) held.hold(Buffer.alloc(100), 2);
}

test('lost scans are logged at once, then at most every ten seconds, and all are counted', () => {
  held.hold(FULL, 1);
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
  held.hold(FULL, 1);
  loseScans(10);
  held.drop(1);
  expect(logged).toEqual([2, 20]);
  held.drop(0);
  expect(logged).toEqual([2, 20]);
});

test('once the disk has what was offered, the log’s late acknowledgement drops nothing that came later', () => {
  held.hold(Buffer.from('one'), 1);
  held.offer();
  held.drop(1);
  held.hold(Buffer.from('two'), 1);
  offers[0]?.accepted();
  expect(held.all().map(String)).toEqual(['two']);
  held.offer();
  expect(offers.map(({ frames }) => frames)).toEqual(['one', 'two']);
  offers[1]?.accepted();
  expect(held.all()).toEqual([]);
  expect(held.bytes).toBe(0);
});

import { execFileSync } from 'node:child_process';
import fs, { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { recordingLogger } from '../../../test/harness/recording-logger.ts';
import { keepShipped, shippedSegmentsIn } from './shipped-segments.ts';

const logger = pino({ level: 'silent' });
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signpost-shipped-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Creates a sealed segment of a spool whose last scan is `hoursAgo` old. */
function segment(spool: string, name: string, hoursAgo: number): string {
  const path = join(folder, 'spool', spool, `${name}.scans`);
  mkdirSync(join(folder, 'spool', spool), { recursive: true });
  writeFileSync(path, name);
  const at = Date.now() / 1_000 - hoursAgo * 3_600;
  utimesSync(path, at, at);
  return path;
}

/** A disk of 1 MiB; undefined without the permission to mount one. */
function smallDisk(): string | undefined {
  const disk = join(folder, 'disk');
  mkdirSync(disk);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'signpost-test', disk], { stdio: 'ignore' });
  } catch (error) {
    if (process.env.CI === 'true') throw error;
    return undefined;
  }
  return disk;
}

function keep(hours: number) {
  const kept = keepShipped(join(folder, 'shipped'), hours, logger);
  onTestFinished(kept.stop);
  return kept;
}

test('with 0 hours nothing is kept, and segments kept before are removed', () => {
  const before = keep(2);
  before.take(segment('0', '000000000000001', 1));
  expect(shippedSegmentsIn(join(folder, 'shipped'))).toHaveLength(1);
  const { take } = keep(0);
  take(segment('0', '000000000000002', 0));
  expect(shippedSegmentsIn(join(folder, 'shipped'))).toEqual([]);
  expect(readdirSync(join(folder, 'spool', '0'))).toEqual([]);
});

test('segments are kept for the configured time, oldest first, and those of two spools under distinct names', () => {
  const { take } = keep(2);
  take(segment('1', '000000000000002', 1));
  take(segment('0', '000000000000002', 1.9));
  take(segment('0', '000000000000001', 2.1));
  expect(shippedSegmentsIn(join(folder, 'shipped'))).toHaveLength(3);
  keep(2);
  expect(shippedSegmentsIn(join(folder, 'shipped')).map(({ path }) => path.split('/').at(-1))).toEqual([
    '000000000000002-0.scans',
    '000000000000002-1.scans',
  ]);
});

test('while the disk is nearly full the oldest are removed, and that is logged', ({ skip }) => {
  const disk = smallDisk();
  if (disk === undefined) return skip();
  try {
    const shipped = join(disk, 'shipped');
    mkdirSync(shipped);
    for (const name of ['1', '2', '3']) writeFileSync(join(shipped, `${name}.scans`), Buffer.alloc(320 * 1_024));
    const { lines, logger: recording } = recordingLogger();
    keepShipped(shipped, 24, recording).stop();
    expect(readdirSync(shipped)).toEqual(['2.scans', '3.scans']);
    keepShipped(shipped, 24, recording).stop();
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 50, segments: 1, msg: 'shipped segments are deleted early: the disk is nearly full' },
    ]);
  } finally {
    execFileSync('umount', [disk]);
  }
});

test('a sweep examines one segment more than it removes, however many are kept', () => {
  vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const shipped = join(folder, 'shipped');
  const { take } = keep(1);
  for (let nth = 0; nth < 100; nth++) take(segment('0', String(nth).padStart(15, '0'), nth < 3 ? 0.99 : 0));
  // It comes from a spool that was published late.
  take(segment('1', '000000000000001', 0.99));
  expect(readdirSync(shipped)).toHaveLength(101);
  const calls = (['readdirSync', 'statSync', 'statfsSync'] as const).map((name) => vi.spyOn(fs, name));
  syncBuiltinESMExports();
  onTestFinished(() => {
    vi.restoreAllMocks();
    syncBuiltinESMExports();
  });
  vi.advanceTimersByTime(60_000);
  expect(calls.map((call) => call.mock.calls.length)).toEqual([0, 5, 1]);
  vi.restoreAllMocks();
  syncBuiltinESMExports();
  expect(readdirSync(shipped).sort()[0]).toBe('000000000000003-0.scans');
});

test('a segment is synced to disk before it is kept', () => {
  const synced: string[] = [];
  vi.spyOn(fs, 'fsyncSync').mockImplementation((file) => void synced.push(fs.readFileSync(file, 'utf8')));
  syncBuiltinESMExports();
  onTestFinished(() => {
    vi.restoreAllMocks();
    syncBuiltinESMExports();
  });
  keep(2).take(segment('0', '000000000000001', 0));
  expect(synced).toEqual(['000000000000001']);
});

test('a segment that can’t be kept is deleted', () => {
  const { take } = keep(2);
  writeFileSync(join(folder, 'shipped'), 'no folder');
  const path = segment('0', '000000000000001', 0);
  take(path);
  expect(readdirSync(join(folder, 'spool', '0'))).toEqual([]);
});

import fs, {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { recordingLogger } from '../../../test/harness/recording-logger.ts';
import { frame } from './frame.fixture.ts';
import { readFrames } from './frames.ts';
import { readSpool, type SpoolReader } from './read-spool.ts';
import { sealOrphan } from './segments.ts';
import { openSpool, type Spool, type SpoolOptions } from './spool.ts';
import { syncSpool } from './sync-spool.ts';

const logger = pino({ level: 'silent' });
const EVENTUALLY = { interval: 20 };
let folder: string;

beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), 'signpost-spool-')), 'spool');
});
afterEach(() => rmSync(join(folder, '..'), { recursive: true, force: true }));

/** Opens a spool as a worker does, and closes it after the test without a grace period, as if it had been killed. */
function open(offer: SpoolOptions['offer'] = () => {}, log = logger): Spool {
  const spool = openSpool({ folder, logger: log, offer });
  onTestFinished(() => spool.close(0));
  return spool;
}

/** Appends in one event loop iteration; resolves when all payloads are kept. */
async function append(spool: Spool, ...texts: string[]): Promise<void> {
  await Promise.all(texts.map((text) => new Promise<void>((kept) => spool.append(Buffer.from(text), kept))));
}

/** Reads and acknowledges all payloads. */
function takeAll(reader: SpoolReader = readSpool(folder, logger)): string[] {
  const taken: string[] = [];
  for (let batch = reader.next(); batch; batch = reader.next()) {
    taken.push(...textsOf(batch.payloads));
    batch.forget();
  }
  return taken;
}

function textsOf(payloads: readonly Uint8Array[]): string[] {
  return payloads.map((each) => Buffer.from(each).toString());
}

function segments(): string[] {
  return readdirSync(folder)
    .sort()
    .map((name) => join(folder, name));
}

/** Puts a file in place of the folder: no segment can be opened, not even by root. */
function breakDisk(): void {
  rmSync(folder, { recursive: true });
  writeFileSync(folder, '');
}

function repairDisk(): void {
  rmSync(folder);
  mkdirSync(folder);
}

test('a payload is on disk before its callback is called', async () => {
  const spool = open();
  let onDisk = Buffer.alloc(0);
  await new Promise<void>((resolve) => {
    spool.append(Buffer.from('a scan'), () => {
      onDisk = readFileSync(segments()[0] ?? '');
      resolve();
    });
  });
  expect(onDisk).toEqual(frame(Buffer.from('a scan')));
});

test('a payload may be changed once it is appended', async () => {
  const spool = open();
  const bytes = Buffer.from('one');
  const kept = new Promise<void>((resolve) => spool.append(bytes, resolve));
  bytes.write('two');
  await kept;
  expect(takeAll()).toEqual(['one']);
});

test('any number of payloads in one event loop iteration', async () => {
  const texts = Array.from({ length: 5_000 }, (_, index) => `${index} `.padEnd(300, '.'));
  await append(open(), ...texts);
  expect(takeAll()).toEqual(texts);
});

test('payloads are returned in order, again and again until they are acknowledged', async () => {
  const spool = open();
  const reader = readSpool(folder, logger);
  expect(reader.next()).toBeUndefined();
  await append(spool, 'one', 'two');
  await append(spool, 'three');
  expect(reader.next()?.payloads).toHaveLength(3);
  expect(reader.depth()).toBeGreaterThan(0);
  expect(takeAll(reader)).toEqual(['one', 'two', 'three']);
  expect(reader.depth()).toBe(0);
  await append(spool, 'four');
  expect(takeAll(reader)).toEqual(['four']);
});

test('a segment that is acknowledged but can’t be removed waits no more', async () => {
  const spool = open();
  // Enough for a segment of their own.
  await append(spool, ...Array.from({ length: 90 }, () => 'x'.repeat(100_000)));
  await append(spool, 'last');
  const reader = readSpool(folder, logger, () => {
    throw new Error('it can’t be removed');
  });
  expect(reader.waitingMs()).toBeDefined();
  expect(takeAll(reader).at(-1)).toBe('last');
  expect(segments()).toHaveLength(2);
  expect(reader.depth()).toBe(0);
  expect(reader.waitingMs()).toBeUndefined();
});

test('a segment that could not be removed is removed a minute later, and not returned again', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const spool = open();
  await append(spool, 'one');
  await spool.close(0);
  const take = vi.fn((path: string) => rmSync(path));
  take.mockImplementationOnce(() => {
    throw new Error('it can’t be removed');
  });
  const reader = readSpool(folder, logger, take);
  expect(takeAll(reader)).toEqual(['one']);
  vi.advanceTimersByTime(59_999);
  expect(takeAll(reader)).toEqual([]);
  expect(segments()).toHaveLength(1);
  vi.advanceTimersByTime(1);
  expect(takeAll(reader)).toEqual([]);
  expect(segments()).toEqual([]);
  expect(take).toHaveBeenCalledTimes(2);
});

test('the spool of an ended process is removed from disk once it is acknowledged', async () => {
  await append(open(), 'a scan');
  sealOrphan(folder);
  expect(takeAll()).toEqual(['a scan']);
  expect(segments()).toEqual([]);
});

test('segments are rotated by size, and read completely', async () => {
  const spool = open();
  const megabytes = Array.from({ length: 20 * 64 }, (_, index) => `${index} `.padEnd(16_000, '.'));
  for (let at = 0; at < megabytes.length; at += 64) await append(spool, ...megabytes.slice(at, at + 64));
  expect(segments().length).toBeGreaterThan(2);
  expect(takeAll()).toEqual(megabytes);
  expect(segments().length).toBeLessThanOrEqual(1);
});

test('a reader concurrent with the writer neither misses nor repeats anything, wherever segments end', async () => {
  const spool = open();
  const reader = readSpool(folder, logger);
  const taken: string[] = [];
  const texts = Array.from({ length: 3_000 }, (_, index) => `${index} `.padEnd(10_000, '.'));
  for (let at = 0; at < texts.length; at += 7) {
    await append(spool, ...texts.slice(at, at + 7));
    const batch = at % 2 === 0 ? reader.next() : undefined;
    taken.push(...textsOf(batch?.payloads ?? []));
    batch?.forget();
  }
  expect([...taken, ...takeAll(reader)]).toEqual(texts);
});

test('an old open segment is sealed, so that no scans remain in it, unless the one before it still waits', async () => {
  const waiting = join(folder, '..', 'waiting');
  const other = openSpool({ folder: waiting, logger, offer: () => {} });
  onTestFinished(() => other.close(0));
  // Enough for a segment of their own.
  await append(other, ...Array.from({ length: 600 }, () => 'x'.repeat(16_000)));
  await append(other, 'last');
  expect(readdirSync(waiting)).toHaveLength(2);

  await append(open(), 'a scan');
  expect(takeAll()).toEqual(['a scan']);
  expect(segments()).toHaveLength(1);
  await expect.poll(() => takeAll().concat(segments()), { interval: 500 }).toEqual([]);
  const [first, last] = readdirSync(waiting).sort();
  expect([first, last]).toEqual([expect.stringContaining('.scans'), expect.stringContaining('.open')]);
  expect(takeAll(readSpool(waiting, logger)).at(-1)).toBe('last');
  await expect
    .poll(() => takeAll(readSpool(waiting, logger)).concat(readdirSync(waiting)), { interval: 500 })
    .toEqual([]);
});

test('the work for waiting segments is proportional to their number', async () => {
  const count = 50;
  mkdirSync(folder);
  for (let nth = 1; nth <= count; nth++) {
    writeFileSync(join(folder, `${String(nth).padStart(15, '0')}.scans`), frame(Buffer.from(`${nth}`)));
  }
  const stats = vi.spyOn(fs, 'statSync');
  const listings = vi.spyOn(fs, 'readdirSync');
  syncBuiltinESMExports();
  onTestFinished(() => {
    vi.restoreAllMocks();
    syncBuiltinESMExports();
  });
  const reader = readSpool(folder, logger);
  const sync = syncSpool(folder, reader.isForgotten);
  for (let tick = 0; tick < 10; tick++) {
    expect(reader.depth()).toBeGreaterThan(0);
    await sync();
  }
  // One for the depth and two for syncing each.
  expect(stats).toHaveBeenCalledTimes(3 * count);
  listings.mockClear();
  expect(takeAll(reader)).toHaveLength(count);
  expect(listings).toHaveBeenCalledTimes(2);
  expect(reader.depth()).toBe(0);
});

describe('how long scans wait', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'performance'] }));
  afterEach(() => void vi.useRealTimers());

  test('since the others were acknowledged, at most, however old their segment is', async () => {
    const spool = open();
    await append(spool, 'one');
    vi.advanceTimersByTime(1_000_000);
    const reader = readSpool(folder, logger);
    expect(reader.waitingMs()).toBe(1_000_000);
    expect(takeAll(reader)).toEqual(['one']);
    await append(spool, 'two');
    vi.advanceTimersByTime(2_000_000);
    expect(reader.waitingMs()).toBe(2_000_000);
    expect(takeAll(reader)).toEqual(['two']);
    expect(reader.waitingMs()).toBeUndefined();
  });

  test.each([
    ['back', -3_600_000],
    ['forward', 3_600_000],
  ])('also if the clock is set %s meanwhile', async (_, ms) => {
    const spool = open();
    const reader = readSpool(folder, logger);
    await append(spool, 'one');
    expect(reader.depth()).toBeGreaterThan(0);
    vi.setSystemTime(Date.now() + ms);
    vi.advanceTimersByTime(200_000);
    expect(reader.waitingMs()).toBe(200_000);
    expect(takeAll(reader)).toEqual(['one']);
    await append(spool, 'two');
    vi.setSystemTime(Date.now() + ms);
    vi.advanceTimersByTime(100_000);
    expect(reader.waitingMs()).toBe(100_000);
  });

  test('since a process can tell, if the clock was set back before it started', async () => {
    await append(open(), 'one');
    vi.setSystemTime(Date.now() - 3_600_000);
    const reader = readSpool(folder, logger);
    expect(reader.waitingMs()).toBe(0);
    vi.advanceTimersByTime(200_000);
    expect(reader.waitingMs()).toBe(200_000);
  });
});

test('a torn last frame and a corrupt one cost no other frame', async () => {
  await append(open(), 'one', 'two', 'three');
  const [path = ''] = segments();
  const bytes = readFileSync(path);
  const two = bytes.indexOf('two');
  bytes.write('TWO', two);
  writeFileSync(path, bytes);
  appendFileSync(path, frame(Buffer.from('torn')).subarray(0, 10));

  sealOrphan(folder);
  expect(takeAll()).toEqual(['one', 'three']);
});

describe('a failing disk', () => {
  test('delays no answer, and stores the held payloads once it recovers', async () => {
    const spool = open();
    breakDisk();
    await append(spool, 'one');
    await append(spool, 'two');
    expect(spool.status()).toMatchObject({ failing: expect.any(String), lost: 0 });
    expect(spool.status().held).toBeGreaterThan(0);
    repairDisk();
    await expect.poll(() => spool.status(), EVENTUALLY).toMatchObject({ failing: undefined, held: 0, lost: 0 });
    expect(takeAll()).toEqual(['one', 'two']);
  });

  test('does not prevent a start', async () => {
    writeFileSync(folder, '');
    const spool = open();
    await append(spool, 'one');
    expect(spool.status().failing).toBeDefined();
    rmSync(folder);
    await expect.poll(() => existsSync(folder) && takeAll(), EVENTUALLY).toEqual(['one']);
  });

  test('offers the held payloads, in order, until they are accepted', async () => {
    const offered: string[][] = [];
    const spool = open((frames, taken) => {
      offered.push(textsOf(readFrames(frames, 'nothing').payloads));
      setTimeout(taken, 10);
    });
    breakDisk();
    const texts = Array.from({ length: 2_000 }, (_, index) => `${index} `.padEnd(1_000, '.'));
    for (let at = 0; at < texts.length; at += 100) await append(spool, ...texts.slice(at, at + 100));
    await expect.poll(() => offered.flat(), EVENTUALLY).toEqual(texts);
    expect(offered.length).toBeGreaterThan(2);
    await expect.poll(() => spool.status(), EVENTUALLY).toMatchObject({ held: 0, lost: 0 });
  });

  test('is working again once it can be written, and not because the log has taken what was held', async () => {
    const spool = open((_, taken) => taken());
    breakDisk();
    await append(spool, 'one');
    await expect.poll(() => spool.status(), EVENTUALLY).toMatchObject({ failing: expect.any(String), held: 0 });
    repairDisk();
    const obstacle = join(folder, 'probe');
    mkdirSync(obstacle);
    const { failures } = spool.status();
    await expect.poll(() => spool.status().failures, EVENTUALLY).toBeGreaterThan(failures);
    expect(spool.status().failing).toBe('EISDIR');
    rmSync(obstacle, { recursive: true });
    await expect.poll(() => spool.status().failing, EVENTUALLY).toBeUndefined();
  });

  test('offers the held payloads on close, and reports a loss only if there is one', async () => {
    const { lines, logger } = recordingLogger();
    let offered: string[] = [];
    const spool = open((frames, taken) => {
      offered = textsOf(readFrames(frames, 'nothing').payloads);
      taken();
    }, logger);
    breakDisk();
    await append(spool, 'one');
    await spool.close(5_000);
    expect(offered).toEqual(['one']);
    expect(lines.join('')).not.toContain('scans were lost');

    const losing = open(() => {}, logger);
    await append(losing, 'two', 'three');
    await append(losing, 'four');
    await losing.close(0);
    expect(lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg.startsWith('scans were lost'))).toMatchObject([
      { level: 50, scans: 3 },
    ]);
  });

  test('fills 64 MiB of memory; further losses are reported', async () => {
    const spool = open();
    breakDisk();
    const payload = Buffer.alloc(16_000);
    const kept = Array.from(
      { length: 4_300 },
      (_, index) =>
        new Promise<void>((resolve) => {
          setTimeout(() => spool.append(payload, resolve), index % 50);
        }),
    );
    await Promise.all(kept);
    expect(spool.status().lost).toBeGreaterThan(0);
    expect(spool.status().held).toBeLessThanOrEqual(64 * 1024 * 1024);
  });
});

test('no other user of the machine can read the scans in a segment', async () => {
  await append(open(), 'a scan');
  expect(statSync(segments()[0] ?? '').mode & 0o077).toBe(0);
});

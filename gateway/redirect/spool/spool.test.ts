import {
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
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { frame, readFrames } from './frames.ts';
import { readSpool, type SpoolReader } from './read-spool.ts';
import { sealWhatIsLeft } from './segments.ts';
import { openSpool, type Spool, type SpoolOptions } from './spool.ts';

const logger = pino({ level: 'silent' });
const EVENTUALLY = { timeout: 10_000, interval: 20 };
let folder: string;

beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), 'signpost-spool-')), 'spool');
});
afterEach(() => rmSync(join(folder, '..'), { recursive: true, force: true }));

/** A spool as a worker opens it, which is gone after the test as if it had been killed. */
function open(offer: SpoolOptions['offer'] = () => {}): Spool {
  const spool = openSpool({ folder, logger, offer });
  onTestFinished(() => spool.close(0));
  return spool;
}

/** Appends in one turn of the event loop; resolves when all were kept. */
async function append(spool: Spool, ...texts: string[]): Promise<void> {
  await Promise.all(texts.map((text) => new Promise<void>((kept) => spool.append(Buffer.from(text), kept))));
}

/** Everything that is given out to be carried on. */
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

/** A file instead of the folder: no segment can be opened, not even by root. */
function breakDisk(): void {
  rmSync(folder, { recursive: true });
  writeFileSync(folder, '');
}

function mendDisk(): void {
  rmSync(folder);
  mkdirSync(folder);
}

test('a payload is on disk before it is told that it is kept', async () => {
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

test('as many payloads in a turn as there are', async () => {
  const texts = Array.from({ length: 5_000 }, (_, index) => `${index} `.padEnd(300, '.'));
  await append(open(), ...texts);
  expect(takeAll()).toEqual(texts);
});

test('payloads are given out in their order, again and again until they are forgotten', async () => {
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

test('what a process that is gone has left is gone from the disk once it is forgotten', async () => {
  await append(open(), 'a scan');
  sealWhatIsLeft(folder);
  expect(takeAll()).toEqual(['a scan']);
  expect(segments()).toEqual([]);
});

test('segments are rotated by size, and given out completely', async () => {
  const spool = open();
  const megabytes = Array.from({ length: 20 * 64 }, (_, index) => `${index} `.padEnd(16_000, '.'));
  for (let at = 0; at < megabytes.length; at += 64) await append(spool, ...megabytes.slice(at, at + 64));
  expect(segments().length).toBeGreaterThan(2);
  expect(takeAll()).toEqual(megabytes);
  expect(segments().length).toBeLessThanOrEqual(1);
});

test('a reader beside the writer misses nothing and takes nothing twice, wherever segments end', async () => {
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

test('an open segment is closed when it is old, so that no scans stay', async () => {
  await append(open(), 'a scan');
  expect(takeAll()).toEqual(['a scan']);
  expect(segments()).toHaveLength(1);
  await expect.poll(() => takeAll().concat(segments()), { timeout: 15_000, interval: 500 }).toEqual([]);
});

test('a torn last frame and a corrupt one cost nothing but themselves', async () => {
  await append(open(), 'one', 'two', 'three');
  const [path = ''] = segments();
  const bytes = readFileSync(path);
  const two = bytes.indexOf('two');
  bytes.write('TWO', two);
  writeFileSync(path, bytes);
  appendFileSync(path, frame(Buffer.from('torn')).subarray(0, 10));

  sealWhatIsLeft(folder);
  expect(takeAll()).toEqual(['one', 'three']);
});

describe('a disk that takes nothing', () => {
  test('holds no answer back, and takes what waits once it can', async () => {
    const spool = open();
    breakDisk();
    await append(spool, 'one');
    await append(spool, 'two');
    expect(spool.status()).toMatchObject({ failing: expect.any(String), lost: 0 });
    expect(spool.status().held).toBeGreaterThan(0);
    mendDisk();
    await expect.poll(() => spool.status(), EVENTUALLY).toMatchObject({ failing: undefined, held: 0, lost: 0 });
    expect(takeAll()).toEqual(['one', 'two']);
  });

  test('is no reason not to start', async () => {
    writeFileSync(folder, '');
    const spool = open();
    await append(spool, 'one');
    expect(spool.status().failing).toBeDefined();
    rmSync(folder);
    await expect.poll(() => existsSync(folder) && takeAll(), EVENTUALLY).toEqual(['one']);
  });

  test('has what waits offered to others, in its order, until they have it', async () => {
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

  test('has what waits when it is closed given to others', async () => {
    let offered: string[] = [];
    const spool = open((frames, taken) => {
      offered = textsOf(readFrames(frames, 'nothing').payloads);
      taken();
    });
    breakDisk();
    await append(spool, 'one');
    await spool.close(5_000);
    expect(offered).toEqual(['one']);
  });

  test('fills 64 MiB of memory; what is lost then is told', async () => {
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

test('nobody else on the machine can read the scans in a segment', async () => {
  await append(open(), 'a scan');
  expect(statSync(segments()[0] ?? '').mode & 0o077).toBe(0);
});

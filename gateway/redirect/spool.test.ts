import {
  appendFileSync,
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
import { afterEach, beforeEach, expect, test } from 'vitest';
import { frame } from './frames.ts';
import { openSpool, type Spool } from './spool.ts';

const logger = pino({ level: 'silent' });
let folder: string;

beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), 'signpost-spool-')), 'spool');
});
afterEach(() => rmSync(join(folder, '..'), { recursive: true, force: true }));

/** Appends in one turn of the event loop; resolves when all were kept. */
async function append(spool: Spool, ...texts: string[]): Promise<void> {
  await Promise.all(texts.map((text) => new Promise<void>((kept) => spool.append(Buffer.from(text), kept))));
}

/** Everything that the spool gives out. */
function takeAll(spool: Spool): string[] {
  const taken: string[] = [];
  for (let batch = spool.next(); batch; batch = spool.next()) {
    taken.push(...batch.payloads.map((each) => Buffer.from(each).toString()));
    batch.forget();
  }
  return taken;
}

function segments(): string[] {
  return readdirSync(folder)
    .sort()
    .map((name) => join(folder, name));
}

test('a payload is on disk before it is told that it is kept', async () => {
  const spool = openSpool(folder, logger);
  let onDisk = Buffer.alloc(0);
  await new Promise<void>((resolve) => {
    spool.append(Buffer.from('a scan'), () => {
      onDisk = readFileSync(segments()[0] ?? '');
      resolve();
    });
  });
  expect(onDisk).toEqual(frame(Buffer.from('a scan')));
});

test('payloads are given out in their order, again and again until they are forgotten', async () => {
  const spool = openSpool(folder, logger);
  expect(spool.next()).toBeUndefined();
  await append(spool, 'one', 'two');
  await append(spool, 'three');
  expect(spool.next()?.payloads).toHaveLength(3);
  expect(takeAll(spool)).toEqual(['one', 'two', 'three']);
  await append(spool, 'four');
  expect(takeAll(spool)).toEqual(['four']);
});

test('what an earlier run left comes first, and is gone from the disk once it is forgotten', async () => {
  const earlier = openSpool(folder, logger);
  await append(earlier, 'earlier');
  earlier.close();
  const [left = ''] = segments();

  const spool = openSpool(folder, logger);
  await append(spool, 'later');
  expect(takeAll(spool)).toEqual(['earlier', 'later']);
  expect(segments()).not.toContain(left);
});

test('segments are rotated by size, and given out completely', async () => {
  const spool = openSpool(folder, logger);
  const megabytes = Array.from({ length: 20 * 64 }, (_, index) => `${index} `.padEnd(16_000, '.'));
  for (let at = 0; at < megabytes.length; at += 64) await append(spool, ...megabytes.slice(at, at + 64));
  expect(segments().length).toBeGreaterThan(2);
  expect(takeAll(spool)).toEqual(megabytes);
  expect(segments().length).toBeLessThanOrEqual(1);
});

test('a torn last frame and a corrupt one cost nothing but themselves', async () => {
  const earlier = openSpool(folder, logger);
  await append(earlier, 'one', 'two', 'three');
  earlier.close();
  const [path = ''] = segments();
  const bytes = readFileSync(path);
  const two = bytes.indexOf('two');
  bytes.write('TWO', two);
  writeFileSync(path, bytes);
  appendFileSync(path, frame(Buffer.from('torn')).subarray(0, 10));

  expect(takeAll(openSpool(folder, logger))).toEqual(['one', 'three']);
});

test('a disk that takes nothing holds no answer back, and takes what waits once it can', async () => {
  const spool = openSpool(folder, logger);
  // Instead of the folder, a file: no segment can be opened, not even by root.
  rmSync(folder, { recursive: true });
  writeFileSync(folder, '');
  await append(spool, 'one');
  await append(spool, 'two');
  expect(spool.status()).toMatchObject({ failing: 'ENOTDIR', lost: 0 });
  expect(spool.status().held).toBeGreaterThan(0);

  rmSync(folder);
  mkdirSync(folder);
  spool.close();
  expect(spool.status()).toEqual({ failing: undefined, held: 0, lost: 0 });
  expect(takeAll(openSpool(folder, logger))).toEqual(['one', 'two']);
});

test('what waited in memory is carried on even if the disk never recovers', async () => {
  const spool = openSpool(folder, logger);
  rmSync(folder, { recursive: true });
  writeFileSync(folder, '');
  await append(spool, 'one');
  expect(takeAll(spool)).toEqual(['one']);
  await append(spool, 'two');
  expect(takeAll(spool)).toEqual(['two']);
});

test('memory takes 64 MiB while the disk takes nothing; what is lost then is told', async () => {
  const spool = openSpool(folder, logger);
  rmSync(folder, { recursive: true });
  writeFileSync(folder, '');
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

test('nobody else on the machine can read the addresses in a segment', async () => {
  const spool = openSpool(folder, logger);
  await append(spool, 'an address');
  expect(statSync(segments()[0] ?? '').mode & 0o077).toBe(0);
});

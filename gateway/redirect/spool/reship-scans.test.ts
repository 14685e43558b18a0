import { execFile } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { NewRecord } from '../../../common/log/log.ts';
import { ScanSchema } from '../../../proto/gen/signpost/scans/v1/scan_pb.ts';
import { frame } from './frame.fixture.ts';
import { reshipScans } from './reship-scans.ts';

const NOW = Date.now();

let folder: string;
let spools: string;
let shipped: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signpost-reship-'));
  [spools, shipped] = [join(folder, 'spool'), join(folder, 'shipped')];
  mkdirSync(join(spools, '0'), { recursive: true });
  mkdirSync(shipped);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** The frame of a scan that is recognised by its referrer. */
function scan(referrer: string, scannedAt = NOW): Buffer {
  const id = Buffer.alloc(16);
  id.writeUIntBE(scannedAt, 0, 6);
  return frame(toBinary(ScanSchema, create(ScanSchema, { id, codeId: 'qr_a', referrer })));
}

/**
 * Publishes everything since an hour ago; returns the referrers. `onPublish`: called before each call of the log
 * returns.
 */
async function reship(onPublish: () => void = () => undefined) {
  const referrers: string[] = [];
  const publish = async (_topic: string, records: readonly NewRecord[]) => {
    referrers.push(...records.map(({ value }) => fromBinary(ScanSchema, value ?? new Uint8Array()).referrer));
    onPublish();
  };
  const counts = await reshipScans({ spools, shipped, since: NOW - 3_600_000, log: { publish } });
  return { ...counts, referrers };
}

test('scans of kept segments, of sealed ones and of those that are being written are published', async () => {
  writeFileSync(join(shipped, '000000000000001-0.scans'), scan('kept'));
  writeFileSync(join(spools, '0', '000000000000002.scans'), scan('sealed'));
  writeFileSync(join(spools, '0', '000000000000003.open'), Buffer.concat([scan('a'), scan('b')]));
  // The beginning of a frame whose rest is not written yet.
  appendFileSync(join(spools, '0', '000000000000003.open'), scan('c').subarray(0, 20));
  expect(await reship()).toEqual({ segments: 3, scans: 4, referrers: ['sealed', 'a', 'b', 'kept'] });
});

test('scans that were answered at the time or later are published, and none from before', async () => {
  const [old, oldest] = [NOW - 3_600_001, NOW - 3_600_000];
  writeFileSync(join(shipped, '000000000000001-0.scans'), Buffer.concat([scan('old', old), scan('kept')]));
  writeFileSync(join(spools, '0', '000000000000002.open'), Buffer.concat([scan('old', old), scan('open', oldest)]));
  writeFileSync(join(spools, '0', '000000000000003.open'), scan('old', old));
  expect(await reship()).toEqual({ segments: 2, scans: 2, referrers: ['open', 'kept'] });
});

test('segments that the gateway seals or moves meanwhile are published', async () => {
  const spool = (name: string) => join(spools, '0', name);
  writeFileSync(spool('000000000000001.scans'), scan('first'));
  writeFileSync(spool('000000000000002.scans'), scan('moved'));
  writeFileSync(spool('000000000000003.open'), scan('sealed'));
  let isFirst = true;
  const { referrers } = await reship(() => {
    if (isFirst) {
      renameSync(spool('000000000000002.scans'), join(shipped, '000000000000002-0.scans'));
      renameSync(spool('000000000000003.open'), spool('000000000000003.scans'));
    }
    isFirst = false;
  });
  expect(referrers).toEqual(['first', 'sealed', 'moved']);
});

test('segments of more than 1 MiB are published in parts, and damage costs only the scans that it hit', async () => {
  const page = 'x'.repeat(15_000);
  const frames = Array.from({ length: 200 }, (_, n) => scan(`${n} ${page}`));
  frames[100]?.fill(0, 0, 50);
  writeFileSync(join(shipped, '000000000000001-0.scans'), Buffer.concat(frames));
  let calls = 0;
  const { scans, referrers } = await reship(() => void calls++);
  expect(scans).toBe(199);
  expect(referrers.map((referrer) => Number.parseInt(referrer, 10))).toEqual(
    Array.from({ length: 200 }, (_, n) => n).filter((n) => n !== 100),
  );
  expect(calls).toBeGreaterThan(2);
});

test('a segment that can’t be read is reported with the reason after all others were published', async () => {
  mkdirSync(join(shipped, '000000000000001-0.scans'));
  writeFileSync(join(shipped, '000000000000002-0.scans'), scan('kept'));
  let calls = 0;
  const sentence = `1 scans of 1 segments were published again, but not everything could be read: EISDIR: illegal operation on a directory, read '${join(shipped, '000000000000001-0.scans')}'.`;
  await expect(reship(() => void calls++)).rejects.toThrow(sentence);
  expect(calls).toBe(1);
});

test('a folder that can’t be read is reported with the reason after all others were published', async () => {
  // Read before the kept segments.
  rmSync(spools, { recursive: true });
  writeFileSync(spools, '');
  writeFileSync(join(shipped, '000000000000001-0.scans'), scan('kept'));
  let calls = 0;
  const sentence = `1 scans of 1 segments were published again, but not everything could be read: ENOTDIR: not a directory, scandir '${spools}'.`;
  await expect(reship(() => void calls++)).rejects.toThrow(sentence);
  expect(calls).toBe(1);
});

test.each([[[]], [['--since', 'yesterday']]])('the program says what it needs, with the arguments %j', async (args) => {
  const program = join(import.meta.dirname, '../../reship.ts');
  const env = { ...process.env, DATA_DIR: folder, DATABASE_URL: 'postgres://127.0.0.1:1/nobody' };
  await expect(promisify(execFile)(process.execPath, [program, ...args], { env })).rejects.toMatchObject({
    code: 1,
    stderr: '--since must be the time of the oldest scans, in ms since 1970.\n',
  });
});

test('without any folder nothing is published', async () => {
  rmSync(folder, { recursive: true });
  expect(await reship()).toEqual({ segments: 0, scans: 0, referrers: [] });
});

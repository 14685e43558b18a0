import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import type { NewRecord } from '../../../common/log/log.ts';
import { ScanSchema } from '../../../proto/gen/signpost/scans/v1/scan_pb.ts';
import { readFrames } from './frames.ts';
import { segmentsIn } from './segments.ts';
import { type Shipper, shipScans } from './ship-scans.ts';
import { openSpool, type Spool } from './spool.ts';

const logger = pino({ level: 'silent' });
const EVENTUALLY = { timeout: 20_000, interval: 20 };
const CODES = ['qr_a', 'qr_b', 'qr_c'];
/** Large, so that a few hundred are several batches and segments. */
const PAGE = 'x'.repeat(15_000);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signpost-ship-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** What the log does with a call. `part`: it takes what is of one code, and says that it failed. */
type Mood = 'takes' | 'refuses' | 'part' | 'never answers';

/** A log that does as it is told, and sees to it that whatever it has not acknowledged is on disk. */
class MoodyLog {
  mood: () => Mood = () => 'takes';
  calls = 0;
  /** What is in the log, in its order, and what it has said to have. */
  readonly taken: string[] = [];
  readonly acknowledged = new Set<string>();
  /** What was answered, in its order. */
  readonly kept: string[] = [];
  readonly #wrong: string[] = [];

  async publish(_topic: string, records: readonly NewRecord[]): Promise<void> {
    this.calls++;
    const mood = this.mood();
    const names = records.map(({ value }) => nameOf(value ?? new Uint8Array()));
    for (const name of names) if (this.acknowledged.has(name)) this.#wrong.push(`${name} is sent again`);
    await sleep(2);
    this.#lookForLost();
    if (mood === 'never answers') await new Promise(() => {});
    const takes = mood === 'takes' ? names : mood === 'part' ? names.filter((name) => name.startsWith('qr_b')) : [];
    this.taken.push(...takes);
    if (mood !== 'takes') throw new Error(mood);
    for (const name of names) this.acknowledged.add(name);
  }

  /** The shipper starts anew: what it was told is forgotten, as far as it is still on disk. */
  forget(): void {
    for (const name of namesOnDisk()) this.acknowledged.delete(name);
  }

  #lookForLost(): void {
    const onDisk = namesOnDisk();
    for (const name of this.kept) {
      if (!this.acknowledged.has(name) && !onDisk.has(name)) this.#wrong.push(`${name} is gone`);
    }
  }

  /** Nothing was lost or sent again, and each code's scans came in their order, the first time that they came. */
  expectAllIsWell(): void {
    this.#lookForLost();
    expect(this.#wrong).toEqual([]);
    const first = [...new Set(this.taken)];
    for (const code of CODES) {
      for (const spool of ['0', '1']) {
        const its = (names: readonly string[]) => names.filter((name) => name.startsWith(`${code} ${spool} `));
        expect(its(first)).toEqual(its(this.kept));
      }
    }
  }
}

function nameOf(value: Uint8Array): string {
  const { codeId, host } = fromBinary(ScanSchema, value);
  return `${codeId} ${host}`;
}

function namesOnDisk(): Set<string> {
  const spools = readdirSync(folder).map((spool) => join(folder, spool));
  const paths = spools
    .flatMap((spool) => segmentsIn(spool).map(({ path }) => path))
    .filter((path) => lstatSync(path).isFile());
  return new Set(paths.flatMap((path) => readFrames(readFileSync(path), 'nothing').payloads.map(nameOf)));
}

function start(log: MoodyLog): Shipper {
  const shipper = shipScans({ folder, log, logger });
  onTestFinished(() => shipper.stop(0));
  return shipper;
}

function openWorker(worker: string): Spool {
  const spool = openSpool({ folder: join(folder, worker), logger, offer: () => {} });
  onTestFinished(() => spool.close(0));
  return spool;
}

let scans = 0;
/** Answers so many scans of all codes in turn, a few in each turn of the event loop. */
async function answer(spool: Spool, worker: string, count: number, log: MoodyLog): Promise<void> {
  for (let done = 0; done < count; ) {
    const turn = Array.from({ length: Math.min(20, count - done) }, () => {
      const codeId = CODES[scans % CODES.length] ?? '';
      const id = Buffer.alloc(16);
      id.writeUInt32BE(scans, 12);
      const scan = create(ScanSchema, { id, codeId, host: `${worker} ${scans++}`, referrer: PAGE });
      return new Promise<void>((resolve) => {
        spool.append(toBinary(ScanSchema, scan), () => {
          log.kept.push(nameOf(toBinary(ScanSchema, scan)));
          resolve();
        });
      });
    });
    await Promise.all(turn);
    done += turn.length;
  }
}

/** In turn, again and again. */
function inTurn(...moods: Mood[]): () => Mood {
  let call = 0;
  return () => moods[call++ % moods.length] ?? 'takes';
}

test('while brokers refuse and take parts, nothing leaves the disk unacknowledged, and each code keeps its order', async () => {
  const log = new MoodyLog();
  log.mood = inTurn('takes', 'part', 'takes', 'takes', 'refuses', 'takes', 'takes', 'part', 'refuses');
  const [one, other] = [openWorker('0'), openWorker('1')];
  const shipper = start(log);
  await Promise.all([answer(one, '0', 700, log), answer(other, '1', 300, log)]);
  await expect.poll(() => log.acknowledged.size, EVENTUALLY).toBe(1_000);
  log.expectAllIsWell();
  // Several refusals and parts were among them, and what is acknowledged goes.
  expect(log.calls).toBeGreaterThan(18);
  expect(log.taken.length).toBeGreaterThan(1_000);
  await Promise.all([one.close(0), other.close(0)]);
  await expect.poll(() => namesOnDisk().size, EVENTUALLY).toBe(0);
  await expect.poll(() => shipper.status(), EVENTUALLY).toEqual({ shipped: 1_000, depth: 0, failing: false });
}, 60_000);

test('a broker that is away holds everything on disk, and gets it all, in its order, when it is back', async () => {
  const log = new MoodyLog();
  log.mood = () => 'refuses';
  const spool = openWorker('0');
  const shipper = start(log);
  await answer(spool, '0', 600, log);
  await expect.poll(() => log.calls, EVENTUALLY).toBeGreaterThan(2);
  expect(shipper.status()).toMatchObject({ shipped: 0, failing: true });
  expect(namesOnDisk().size).toBe(600);
  log.mood = () => 'takes';
  await expect.poll(() => log.acknowledged.size, EVENTUALLY).toBe(600);
  expect(log.taken).toEqual(log.kept);
  log.expectAllIsWell();
  expect(shipper.status()).toMatchObject({ shipped: 600, failing: false });
}, 60_000);

test('what a shipper has handed over and not heard of is shipped by the one after it, and what is behind that after it', async () => {
  const log = new MoodyLog();
  const before = openWorker('0');
  const ended = start(log);
  log.mood = inTurn('takes', 'takes', 'part', 'never answers');
  await answer(before, '0', 600, log);
  await expect.poll(() => log.calls, EVENTUALLY).toBe(4);
  await ended.stop(0);
  const acknowledged = log.acknowledged.size;
  expect(acknowledged).toBeGreaterThan(0);

  // What was acknowledged and is in a segment that has more comes again, as after kill -9; ids decide.
  log.forget();
  log.mood = () => 'takes';
  const after = openWorker('0');
  await answer(after, '0', 300, log);
  const next = start(log);
  await expect.poll(() => log.acknowledged.size, EVENTUALLY).toBe(900);
  log.expectAllIsWell();
  expect(next.status().failing).toBe(false);
}, 60_000);

test('a stop ships what there is, and waits no longer than it may for a log that does not answer', async () => {
  const log = new MoodyLog();
  const spool = openWorker('0');
  await answer(spool, '0', 300, log);
  await start(log).stop(10_000);
  expect(log.taken).toEqual(log.kept);

  log.forget();
  log.mood = () => 'never answers';
  await answer(spool, '0', 10, log);
  const started = performance.now();
  await start(log).stop(200);
  expect(performance.now() - started).toBeLessThan(5_000);
  expect(namesOnDisk()).toEqual(new Set(log.kept));
});

test('a segment that can’t be read is stepped over: the shipper fails no longer than the log does', async () => {
  const log = new MoodyLog();
  const spool = openWorker('0');
  await answer(spool, '0', 5, log);
  // Older than all others.
  const unreadable = join(folder, '0', '000000000000001.scans');
  mkdirSync(unreadable);
  const shipper = start(log);
  await expect.poll(() => log.acknowledged.size, EVENTUALLY).toBe(5);
  expect(shipper.status().failing).toBe(false);
  await spool.close(0);
  await expect.poll(() => readdirSync(join(folder, '0')), EVENTUALLY).toEqual(['000000000000001.scans']);

  const next = start(log);
  await sleep(500);
  expect(next.status()).toMatchObject({ shipped: 0, failing: false });
  expect(existsSync(unreadable)).toBe(true);
});

test('a spool that can’t be read shows until it can be, also when nobody scans', async () => {
  const path = join(folder, '0');
  mkdirSync(path);
  const shipper = start(new MoodyLog());
  expect(shipper.status().failing).toBe(false);
  // A file instead of the folder: that stops even root, whom permissions don't.
  rmSync(path, { recursive: true });
  writeFileSync(path, '');
  await expect.poll(() => shipper.status().failing, EVENTUALLY).toBe(true);
  rmSync(path);
  mkdirSync(path);
  await expect.poll(() => shipper.status().failing, EVENTUALLY).toBe(false);
});

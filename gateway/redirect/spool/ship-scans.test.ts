import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { GATEWAY_FIGURES } from '../../../common/contract/gateway-figures.ts';
import { type NewRecord, RecordsTooLarge } from '../../../common/log/log.ts';
import { ScanSchema } from '../../../proto/gen/signpost/scans/v1/scan_pb.ts';
import { recordingLogger } from '../../../test/harness/recording-logger.ts';
import { readFrames } from './frames.ts';
import { segmentsIn } from './segments.ts';
import { type Shipper, shipScans } from './ship-scans.ts';
import { openSpool, type Spool } from './spool.ts';

const logger = pino({ level: 'silent' });
const EVENTUALLY = { interval: 20 };
const CODES = ['qr_a', 'qr_b', 'qr_c'];
/** Large, so that a few hundred are several batches and segments. */
const PAGE = 'x'.repeat(15_000);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signpost-ship-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** How the fake log handles a call. `part`: it stores the records of one code, and reports a failure. */
type Behaviour = 'takes' | 'refuses' | 'part' | 'never answers';

/** A fake log with scripted failures that checks that every scan it has not acknowledged is on disk. */
class FakeLog {
  behaviour: () => Behaviour = () => 'takes';
  /** A scan that its topic refuses as too large. */
  refused: string | undefined;
  calls = 0;
  /** The scans in the log, in order, and those that it has acknowledged. */
  readonly stored: string[] = [];
  readonly acknowledged = new Set<string>();
  /** How many scans were published, as the ledger's header says of their day. */
  published = 0;
  /** The scans that were answered, in order. */
  readonly kept: string[] = [];
  readonly #wrong: string[] = [];

  async publish(_topic: string, records: readonly NewRecord[]): Promise<void> {
    this.calls++;
    const behaviour = this.behaviour();
    const names = records.map(({ value }) => nameOf(value ?? new Uint8Array()));
    for (const name of names) if (this.acknowledged.has(name)) this.#wrong.push(`${name} is sent again`);
    await sleep(2);
    this.#lookForLost();
    if (behaviour === 'never answers') await new Promise(() => {});
    if (behaviour === 'takes') {
      const [figures] = JSON.parse(records[0]?.headers?.[GATEWAY_FIGURES] ?? '[]');
      this.published = figures.at(-1);
    }
    const accepted = names.indexOf(this.refused ?? '');
    if (behaviour === 'takes' && accepted !== -1) {
      this.stored.push(...names.slice(0, accepted));
      for (const name of names.slice(0, accepted)) this.acknowledged.add(name);
      throw new RecordsTooLarge('too large', accepted);
    }
    const takes =
      behaviour === 'takes' ? names : behaviour === 'part' ? names.filter((name) => name.startsWith('qr_b')) : [];
    this.stored.push(...takes);
    if (behaviour !== 'takes') throw new Error(behaviour);
    for (const name of names) this.acknowledged.add(name);
  }

  /** For a restart of the shipper: forgets the acknowledgements of scans that are still on disk. */
  forget(): void {
    for (const name of namesOnDisk()) this.acknowledged.delete(name);
  }

  #lookForLost(): void {
    const onDisk = namesOnDisk();
    for (const name of this.kept) {
      if (!this.acknowledged.has(name) && !onDisk.has(name)) this.#wrong.push(`${name} is gone`);
    }
  }

  /** Expects that nothing was lost or repeated, and that the first copies of each code's scans arrived in order. */
  expectConsistent(): void {
    this.#lookForLost();
    expect(this.#wrong).toEqual([]);
    const first = [...new Set(this.stored)];
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

function start(log: FakeLog, ownLogger = logger): Shipper {
  const shipper = shipScans({ folder, log, logger: ownLogger });
  onTestFinished(() => shipper.stop(0));
  return shipper;
}

function openWorker(worker: string): Spool {
  const spool = openSpool({ folder: join(folder, worker), logger, offer: () => {} });
  onTestFinished(() => spool.close(0));
  return spool;
}

let scans = 0;
/** Answers `count` scans of alternating codes, a few in each event loop iteration. */
async function answer(spool: Spool, worker: string, count: number, log: FakeLog): Promise<void> {
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

/** Cycles through the behaviours. */
function oneAfterAnother(...behaviours: Behaviour[]): () => Behaviour {
  let call = 0;
  return () => behaviours[call++ % behaviours.length] ?? 'takes';
}

test('while brokers reject calls or store parts, nothing leaves the disk unacknowledged, and each code keeps its order', async () => {
  const log = new FakeLog();
  log.behaviour = oneAfterAnother('takes', 'part', 'takes', 'takes', 'refuses', 'takes', 'takes', 'part', 'refuses');
  const [one, other] = [openWorker('0'), openWorker('1')];
  const shipper = start(log);
  await Promise.all([answer(one, '0', 700, log), answer(other, '1', 300, log)]);
  await expect.poll(() => log.acknowledged.size, EVENTUALLY).toBe(1_000);
  log.expectConsistent();
  // Several calls failed or were stored in part, and acknowledged scans are removed.
  expect(log.calls).toBeGreaterThan(18);
  expect(log.stored.length).toBeGreaterThan(1_000);
  await Promise.all([one.close(0), other.close(0)]);
  await expect.poll(() => namesOnDisk().size, EVENTUALLY).toBe(0);
  await expect.poll(() => shipper.status(), EVENTUALLY).toEqual({ shipped: 1_000, depth: 0, failing: false });
});

test('while the broker is unavailable everything stays on disk, and it receives all in order when it is back', async () => {
  const log = new FakeLog();
  log.behaviour = () => 'refuses';
  const spool = openWorker('0');
  const shipper = start(log);
  await answer(spool, '0', 600, log);
  await expect.poll(() => log.calls, EVENTUALLY).toBeGreaterThan(2);
  expect(shipper.status()).toMatchObject({ shipped: 0, failing: true });
  expect(namesOnDisk().size).toBe(600);
  log.behaviour = () => 'takes';
  await expect.poll(() => log.acknowledged.size, EVENTUALLY).toBe(600);
  expect(log.stored).toEqual(log.kept);
  log.expectConsistent();
  expect(shipper.status()).toMatchObject({ shipped: 600, failing: false });
});

test('scans before one that is too large for the topic are published once, however often it is tried again', async () => {
  const log = new FakeLog();
  log.behaviour = () => 'refuses';
  const spool = openWorker('0');
  const shipper = start(log);
  await answer(spool, '0', 40, log);
  log.refused = log.kept[30];
  log.behaviour = () => 'takes';
  await expect.poll(() => log.acknowledged.size, EVENTUALLY).toBe(30);
  const { calls } = log;
  await expect.poll(() => log.calls, EVENTUALLY).toBeGreaterThan(calls + 1);
  expect(log.acknowledged.size).toBe(30);
  expect(shipper.status()).toMatchObject({ shipped: 30, failing: true });
  log.refused = undefined;
  await expect.poll(() => log.acknowledged.size, EVENTUALLY).toBe(40);
  expect(log.stored).toEqual(log.kept);
  log.expectConsistent();
  await expect.poll(() => shipper.status(), EVENTUALLY).toMatchObject({ shipped: 40, failing: false });
  expect(log.published).toBe(40);
});

test('the next shipper repeats what was not acknowledged, and then ships what follows', async () => {
  const log = new FakeLog();
  const before = openWorker('0');
  const ended = start(log);
  log.behaviour = oneAfterAnother('takes', 'takes', 'part', 'never answers');
  await answer(before, '0', 600, log);
  await expect.poll(() => log.calls, EVENTUALLY).toBe(4);
  await ended.stop(0);
  const acknowledged = log.acknowledged.size;
  expect(acknowledged).toBeGreaterThan(0);

  // Acknowledged scans of an incomplete segment are repeated, as after kill -9; they are dropped by id.
  log.forget();
  log.behaviour = () => 'takes';
  const after = openWorker('0');
  await answer(after, '0', 300, log);
  const next = start(log);
  await expect.poll(() => log.acknowledged.size, EVENTUALLY).toBe(900);
  log.expectConsistent();
  expect(next.status().failing).toBe(false);
});

test('a stop ships what there is, and waits for a log that does not answer no longer than the deadline', async () => {
  const log = new FakeLog();
  const spool = openWorker('0');
  await answer(spool, '0', 300, log);
  await start(log).stop(10_000);
  expect(log.stored).toEqual(log.kept);

  log.forget();
  log.behaviour = () => 'never answers';
  await answer(spool, '0', 10, log);
  await start(log).stop(200);
  expect(namesOnDisk()).toEqual(new Set(log.kept));
});

test('an unreadable segment is skipped: the shipper fails no longer than the log does', async () => {
  const log = new FakeLog();
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

test('an unreadable spool is reported until it can be read, also without scans', async () => {
  const path = join(folder, '0');
  mkdirSync(path);
  const shipper = start(new FakeLog());
  expect(shipper.status().failing).toBe(false);
  // A file instead of the folder: it stops even root, for whom permissions don't count.
  rmSync(path, { recursive: true });
  writeFileSync(path, '');
  await expect.poll(() => shipper.status().failing, EVENTUALLY).toBe(true);
  rmSync(path);
  mkdirSync(path);
  await expect.poll(() => shipper.status().failing, EVENTUALLY).toBe(false);
});

test.runIf(process.platform === 'linux')(
  'scans of one spool are synced to disk although another’s can’t be, which is reported once',
  async () => {
    const synced = new Set<string>();
    let failed = 0;
    await using file = await open(folder);
    const spy = vi.spyOn(Object.getPrototypeOf(file) as FileHandle, 'sync').mockImplementation(async function (
      this: FileHandle,
    ) {
      const path = readlinkSync(`/proc/self/fd/${this.fd}`);
      if (path.startsWith(join(folder, '0'))) {
        failed++;
        throw new Error('EIO');
      }
      synced.add(path);
    });
    onTestFinished(() => spy.mockRestore());
    const log = new FakeLog();
    log.behaviour = () => 'refuses';
    for (const worker of ['0', '1']) await answer(openWorker(worker), worker, 5, log);
    const { lines, logger } = recordingLogger();
    start(log, logger);
    await expect.poll(() => [...synced], EVENTUALLY).toContain(join(folder, '1'));
    await expect.poll(() => failed, EVENTUALLY).toBeGreaterThan(2);
    expect(lines.filter((line) => line.includes('can’t be synced'))).toHaveLength(1);
  },
);

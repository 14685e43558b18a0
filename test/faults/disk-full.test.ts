import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { readSpool } from '../../gateway/redirect/spool/read-spool.ts';
import { openSpool } from '../../gateway/redirect/spool/spool.ts';
import { contract } from '../contract/client.ts';
import type { Process } from '../harness/processes.ts';
import { childrenOf, expectCounted, killWithChildren, scanUrl, startVisitors, statusOf } from './visitors.ts';

const EVENTUALLY = { interval: 100 };

/** Whether this process may mount a small disk. */
const mayMount = (() => {
  const folder = mkdtempSync(join(tmpdir(), 'signpost-mount-'));
  try {
    mount(folder);
    execFileSync('umount', [folder]);
    return true;
  } catch (error) {
    if (process.env.CI === 'true') throw error;
    return false;
  } finally {
    rmSync(folder, { recursive: true });
  }
})();

function mount(folder: string): void {
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'signpost-test', folder], { stdio: 'ignore' });
}

/** Fills a disk completely. */
function fill(folder: string): string {
  const path = join(folder, 'filler');
  const file = openSync(path, 'w');
  for (const size of [65_536, 1]) {
    try {
      for (;;) writeSync(file, Buffer.alloc(size));
    } catch (error) {
      expect((error as NodeJS.ErrnoException).code).toBe('ENOSPC');
    }
  }
  closeSync(file);
  return path;
}

const running = contract('file');
let account: Awaited<ReturnType<typeof running.account>>;
let gateway: Process;
let disk: string;
beforeAll(async () => {
  account = await running.account();
  [gateway] = running.signpost.gateways as [Process];
  disk = join(running.signpost.dataDir, 'gateway-0');
});

async function readyz(): Promise<{ status: number; body: { status: string; scans: { lost: number } } }> {
  const response = await fetch(`${gateway.url}/readyz`);
  return { status: response.status, body: (await response.json()) as { status: string; scans: { lost: number } } };
}

test.skipIf(!mayMount)(
  'with a full disk, redirects continue, errors are reported, and no scan is lost, even across a restart',
  async () => {
    await killWithChildren(gateway);
    mount(disk);
    onTestFinished(async () => {
      await killWithChildren(gateway);
      execFileSync('umount', ['--lazy', disk]);
    });
    await gateway.restart();
    const code = await account.create();
    const url = scanUrl(running.signpost, code);
    expect(await statusOf(url)).toBe(302);
    const filler = fill(disk);

    const visitors = startVisitors(url);
    await expect.poll(() => visitors.answered, EVENTUALLY).toBeGreaterThan(3_000);
    expect(await readyz()).toMatchObject({ status: 503, body: { status: "scans can't be written to disk: ENOSPC" } });
    expect(await gateway.log()).toContain('scans can’t be written to disk; they wait in memory');
    // A change is applied too, once it arrives from the topic; until then it is looked up.
    const another = await account.create();
    expect(await statusOf(scanUrl(running.signpost, another))).toBe(302);
    // These scans are shipped from memory.
    await visitors.stop();
    await gateway.kill('SIGTERM');

    await gateway.restart();
    const later = startVisitors(url);
    await expect.poll(() => later.answered, EVENTUALLY).toBeGreaterThan(1_000);
    rmSync(filler);
    await expect.poll(async () => (await readyz()).status, EVENTUALLY).toBe(200);
    await later.stop();
    for (const { others, failed } of [visitors, later]) expect([...others, ...failed]).toEqual([]);
    expect((await readyz()).body.scans.lost).toBe(0);
    await expectCounted(running.signpost.databaseUrl, code, [visitors, later, { sent: 1, answered: 1 }]);
    expect(await childrenOf(gateway, 'gateway/')).toHaveLength(2);
  },
  90_000,
);

test.skipIf(!mayMount)(
  'scans that wait in memory are written once each, although the disk gets room bit by bit',
  async () => {
    const small = mkdtempSync(join(tmpdir(), 'signpost-disk-'));
    mount(small);
    onTestFinished(() => {
      execFileSync('umount', ['--lazy', small]);
      rmSync(small, { recursive: true });
    });
    const fillers = Array.from({ length: 6 }, (_, nth) => join(small, `filler-${nth}`));
    for (const filler of fillers) writeFileSync(filler, Buffer.alloc(2 ** 20));
    fill(small);
    const [folder, logger] = [join(small, 'spool'), pino({ level: 'silent' })];
    const spool = openSpool({ folder, logger, offer: () => {} });
    onTestFinished(() => spool.close(0));
    const scans = 200;
    for (let scan = 0; scan < scans; scan++) {
      const payload = Buffer.alloc(16_000, `${scan}.`);
      await new Promise<void>((kept) => spool.append(payload, kept));
    }
    const waiting = spool.status().held;
    expect(waiting).toBeGreaterThan(3 * 2 ** 20);
    for (const filler of fillers.slice(0, 5)) {
      rmSync(filler);
      const { failures } = spool.status();
      const tried = () => spool.status().failing === undefined || spool.status().failures > failures;
      await expect.poll(tried, EVENTUALLY).toBe(true);
    }
    expect(spool.status()).toMatchObject({ failing: undefined, held: 0, lost: 0 });

    await spool.close(0);
    const reader = readSpool(folder, logger);
    const found: string[] = [];
    for (let batch = reader.next(); batch; batch = reader.next()) {
      found.push(...batch.payloads.map((payload) => Buffer.from(payload).toString('latin1').split('.')[0] ?? ''));
      batch.forget();
    }
    expect(found.map(Number)).toEqual(Array.from({ length: scans }, (_, scan) => scan));
  },
);

test.skipIf(!mayMount)('the disk counts as full until it has room, although the log has taken all scans', async () => {
  const small = mkdtempSync(join(tmpdir(), 'signpost-disk-'));
  mount(small);
  onTestFinished(() => {
    execFileSync('umount', ['--lazy', small]);
    rmSync(small, { recursive: true });
  });
  const filler = fill(small);
  const folder = join(small, 'spool');
  const spool = openSpool({ folder, logger: pino({ level: 'silent' }), offer: (_, accepted) => accepted() });
  onTestFinished(() => spool.close(0));
  await new Promise<void>((kept) => spool.append(Buffer.from('a scan'), kept));
  await expect.poll(() => spool.status().held, EVENTUALLY).toBe(0);
  const { failures } = spool.status();
  await expect.poll(() => spool.status().failures, EVENTUALLY).toBeGreaterThan(failures + 1);
  expect(spool.status().failing).toBe('ENOSPC');

  rmSync(filler);
  await expect.poll(() => spool.status().failing, EVENTUALLY).toBeUndefined();
});

import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { afterFile } from '../harness/after-file.ts';
import { freshDatabase } from '../harness/database.ts';
import { type Process, startSignpost } from '../harness/processes.ts';
import { startTcpProxy } from '../harness/tcp-proxy.ts';
import { PowerCutDisk, whyNoPowerCuts } from '../torture/power-cut.ts';
import {
  type CodeWithTargets,
  expectNoDuplicates,
  newClient,
  recordedScans,
  startChanges,
  startScans,
  waitingBytes,
  withWrongTarget,
} from './power-cut-load.ts';

const EVENTUALLY = { timeout: 60_000, interval: 200 };
/** How long the log is unavailable before the power is cut, in ms. */
const UNAVAILABLE_MS = 10_000;
/** The maximum age of scans that a power cut loses, in ms. One second is documented; this machine may be busy. */
const MAX_LOST_MS = 4_000;

const noPowerCuts = await whyNoPowerCuts();
if (noPowerCuts !== undefined) console.error(`${noPowerCuts} The tests of power cuts are skipped.`);

describe.skipIf(noPowerCuts !== undefined)('a power cut', () => {
  test('of a gateway loses only the scans of the last moments, every time', async () => {
    const disk = await PowerCutDisk.create(256);
    afterFile(() => disk.close());
    const { execPath } = process;
    process.execPath = disk.node;
    onTestFinished(() => {
      process.execPath = execPath;
    });
    const { url: databaseUrl } = await freshDatabase();
    // The gateway uses Postgres for the log, and for look-ups of codes that are not in its table.
    const postgres = await startTcpProxy(databaseUrl);
    const signpost = await startSignpost({
      databaseUrl,
      gatewayDatabaseUrl: postgres.url,
      gatewayEnv: { DATA_DIR: disk.path, GATEWAY_WORKERS: '2' },
    });
    const [gateway] = signpost.gateways as [Process];
    afterFile(() => killAll(gateway));
    const client = await newClient(signpost);
    const create = async () => (await client.create('https://example.com/')) as CodeWithTargets;
    const urlOf = (code: CodeJson) => `${signpost.url}/r/${code.short_code}`;
    const { code: scanned } = await create();
    const codes: CodeWithTargets[] = [];
    for (let n = 0; n < 40; n++) codes.push(await create());

    const rounds: { cut: number; answered: Map<string, number> }[] = [];
    for (const unavailable of [false, true, false, true, false]) {
      const scans = startScans(urlOf(scanned), rounds.length);
      const changing = startChanges(codes, client);
      if (unavailable) postgres.cut();
      await sleep(unavailable ? UNAVAILABLE_MS : 500 + 3_000 * Math.random());
      await expect.poll(() => scans.answered.size, EVENTUALLY).toBeGreaterThan(100);
      await killAll(gateway);
      const cut = Date.now();
      const unsynced = join(disk.path, `unsynced-${rounds.length}`);
      await writeFile(unsynced, 'lost');
      await disk.cut();
      expect(existsSync(unsynced), 'what was not synced is lost').toBe(false);
      await Promise.all([scans.stop(), changing.stop()]);
      rounds.push({ cut, answered: scans.answered });
      postgres.cut();
      await gateway.restart();
      // From its own table, as Postgres is unavailable.
      expect(await withWrongTarget(codes, urlOf)).toEqual([]);
      postgres.restore();
    }
    expect(client.limited).toBe(0);
    const errors = (await gateway.log()).split('\n').filter((line) => /"level":[56]0/.test(line));
    expect(errors.filter((line) => !line.includes('damaged bytes in a spool'))).toEqual([]);

    await expect.poll(() => waitingBytes(gateway), EVENTUALLY).toBe(0);
    // Once the last of these scans is recorded, so are all that were shipped before.
    const last = startScans(urlOf(scanned), rounds.length, 1);
    await expect.poll(() => last.answered.size, EVENTUALLY).toBeGreaterThan(0);
    await last.stop();
    const [newest = ''] = [...last.answered.keys()].slice(-1);
    await expect.poll(async () => (await recordedScans(databaseUrl, scanned)).has(newest), EVENTUALLY).toBe(true);
    await expectNoDuplicates(databaseUrl, scanned);
    const found = await recordedScans(databaseUrl, scanned);
    for (const { cut, answered } of rounds) {
      const missing = [...answered].filter(([referrer]) => !found.has(referrer)).map(([, at]) => cut - at);
      expect(Math.max(0, ...missing)).toBeLessThan(MAX_LOST_MS);
    }
  }, 240_000);
});

/** Kills all processes of a gateway at once. */
async function killAll(gateway: Process): Promise<void> {
  process.kill(-gateway.pid, 'SIGKILL');
  await gateway.ended;
}

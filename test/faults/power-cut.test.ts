import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { afterFile } from '../harness/after-file.ts';
import { freshDatabase } from '../harness/database.ts';
import { type Process, startSignpost } from '../harness/processes.ts';
import { startTcpProxy } from '../harness/tcp-proxy.ts';
import { PowerCutDisk, whyNoPowerCuts } from '../torture/power-cut.ts';
import {
  api,
  type Changed,
  expectNoneTwice,
  misled,
  recordedScans,
  startChanges,
  startScans,
  waitingBytes,
} from './power-cut-load.ts';

const EVENTUALLY = { timeout: 60_000, interval: 200 };
/** How long scans wait for the log before the power is cut, in ms. */
const AWAY_MS = 10_000;
/** How old scans may be, in ms, that a power cut costs. One second is what is documented; this machine may be busy. */
const MOST_LOST_MS = 4_000;

const lacking = await whyNoPowerCuts();
if (lacking !== undefined) console.error(`${lacking} The tests of power cuts are skipped.`);

describe.skipIf(lacking !== undefined)('a power cut', () => {
  test('of a gateway costs it the scans of the last moments and nothing else, again and again', async () => {
    const disk = await PowerCutDisk.create(256);
    afterFile(() => disk.close());
    const { execPath } = process;
    process.execPath = disk.node;
    onTestFinished(() => {
      process.execPath = execPath;
    });
    const { url: databaseUrl } = await freshDatabase();
    // What the gateway has of Postgres: the log, and where codes lead that are not in its table.
    const postgres = await startTcpProxy(databaseUrl);
    const signpost = await startSignpost({
      databaseUrl,
      gatewayDatabaseUrl: postgres.url,
      gatewayEnv: { DATA_DIR: disk.path, GATEWAY_WORKERS: '2' },
    });
    const [gateway] = signpost.gateways as [Process];
    afterFile(() => killAll(gateway));
    const { apiKey } = await signpost.createAccount({ plan: Plan.ENTERPRISE });
    const create = async () => {
      const answer = await api(signpost, apiKey, 'POST', '/qr-codes', { target_url: 'https://example.com/' });
      return ((await answer.json()) as { data: CodeJson }).data;
    };
    const change = async (code: CodeJson, target_url: string) =>
      (await api(signpost, apiKey, 'PATCH', `/qr-codes/${code.id}`, { target_url })).ok;
    const urlOf = (code: CodeJson) => `${signpost.url}/r/${code.short_code}`;
    const scanned = await create();
    const codes: Changed[] = [];
    for (let n = 0; n < 40; n++) {
      const code = await create();
      codes.push({ code, targets: [code.target_url] });
    }

    const rounds: { cut: number; answered: Map<string, number> }[] = [];
    for (const away of [false, true, false, true, false]) {
      const scans = startScans(urlOf(scanned), rounds.length);
      const changing = startChanges(codes, change);
      if (away) postgres.cut();
      await sleep(away ? AWAY_MS : 500 + 3_000 * Math.random());
      await killAll(gateway);
      const cut = Date.now();
      await disk.cut();
      await Promise.all([scans.stop(), changing.stop()]);
      rounds.push({ cut, answered: scans.answered });
      postgres.cut();
      await gateway.restart();
      // By its own table, as there is nobody else to ask.
      expect(await misled(codes, urlOf)).toEqual([]);
      postgres.restore();
    }
    const complaints = (await gateway.log()).split('\n').filter((line) => /"level":[56]0/.test(line));
    expect(complaints.filter((line) => !line.includes('damaged bytes in a spool'))).toEqual([]);

    await expect.poll(() => waitingBytes(gateway), EVENTUALLY).toBe(0);
    // The recorder has all that was shipped when the last scan of now is there.
    const last = startScans(urlOf(scanned), rounds.length, 1);
    await expect.poll(() => last.answered.size, EVENTUALLY).toBeGreaterThan(0);
    await last.stop();
    const [newest = ''] = [...last.answered.keys()].slice(-1);
    await expect.poll(async () => (await recordedScans(databaseUrl, scanned)).has(newest), EVENTUALLY).toBe(true);
    await expectNoneTwice(databaseUrl, scanned);
    const found = await recordedScans(databaseUrl, scanned);
    for (const { cut, answered } of rounds) {
      const missing = [...answered].filter(([referrer]) => !found.has(referrer)).map(([, at]) => cut - at);
      expect(answered.size).toBeGreaterThan(100);
      expect(Math.max(0, ...missing)).toBeLessThan(MOST_LOST_MS);
    }
  }, 240_000);
});

/** All that a gateway is, at once. */
async function killAll(gateway: Process): Promise<void> {
  process.kill(-gateway.pid, 'SIGKILL');
  await gateway.ended;
}

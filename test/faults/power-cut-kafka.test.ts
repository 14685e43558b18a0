import { execFile } from 'node:child_process';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { commandLine } from '../../cli/cli.fixture.ts';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { DAY_MS } from '../../common/runtime/durations.ts';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { dayOf } from '../../src/scans/days.ts';
import { afterFile } from '../harness/after-file.ts';
import { startKafka } from '../harness/kafka.ts';
import { type Process, startSignpost } from '../harness/processes.ts';
import { PowerCutDisk, whyNoPowerCuts } from '../torture/power-cut.ts';
import { api, expectRecorded, locationOf, startScans, waitingBytes } from './power-cut-load.ts';

const EVENTUALLY = { timeout: 60_000, interval: 200 };

const noPowerCuts = await whyNoPowerCuts();
if (noPowerCuts !== undefined) console.error(`${noPowerCuts} The tests of power cuts are skipped.`);

describe.skipIf(noPowerCuts !== undefined || inject('kafkaBrokers') === null)('a power cut', () => {
  test.each([{ of: 'a single broker' }, { of: 'a single broker and the gateway on its machine', both: true }])(
    'of $of loses records that Kafka has acknowledged, and Signpost restores all of them, once each',
    async ({ both }) => {
      const disk = await PowerCutDisk.create(1_024);
      afterFile(() => disk.close());
      const { TMPDIR } = process.env;
      process.env.TMPDIR = disk.path;
      const kafka = await startKafka().finally(() => {
        if (TMPDIR === undefined) delete process.env.TMPDIR;
        else process.env.TMPDIR = TMPDIR;
      });
      afterFile(() => kafka.stop());
      const { execPath } = process;
      process.execPath = disk.node;
      onTestFinished(() => {
        process.execPath = execPath;
      });
      const folder = join(disk.path, 'gateway');
      await mkdir(folder);
      const signpost = await startSignpost({
        kafkaBrokers: kafka.brokers,
        cores: 2,
        roles: ['rpc,relay', 'recorder,worker'],
        env: { SPOOL_RETENTION_HOURS: '1' },
        ...(both && { gatewayEnv: { DATA_DIR: folder } }),
      });
      const dataDir = both ? folder : join(signpost.dataDir, 'gateway-0');
      const [gateway, recorder] = [...signpost.gateways, signpost.cores[1]] as [Process, Process];
      const { json, run } = commandLine(() => signpost);
      const database = new pg.Pool({ connectionString: signpost.databaseUrl });
      onTestFinished(() => database.end());
      const { apiKey } = await signpost.createAccount({ plan: Plan.ENTERPRISE });
      const create = async () => {
        const answer = await api(signpost, apiKey, 'POST', '/qr-codes', { target_url: 'https://example.com/' });
        return ((await answer.json()) as { data: CodeJson }).data;
      };
      const urlOf = (code: CodeJson) => `${signpost.url}/r/${code.short_code}`;
      const published = async () => {
        const waiting = async () => (await database.query('select from outbox_waiting limit 1')).rowCount;
        await expect.poll(waiting, EVENTUALLY).toBe(0);
        await expect.poll(() => waitingBytes(gateway), EVENTUALLY).toBe(0);
      };
      const scanned = await create();
      const early = startScans(urlOf(scanned), 0, 1);
      await expect.poll(() => early.answered.size, EVENTUALLY).toBeGreaterThan(20);
      await early.stop();
      await published();
      await expectRecorded(signpost.databaseUrl, scanned, early.answered);
      // The system itself would do this after half a minute.
      await promisify(execFile)('sync', ['--file-system', disk.path]);

      await recorder.kill();
      const codes = await Promise.all(Array.from({ length: 10 }, create));
      const late = startScans(urlOf(scanned), 1, 4);
      await expect.poll(() => late.answered.size, EVENTUALLY).toBeGreaterThan(500);
      await late.stop();
      await published();
      // Only then is the segment among the retained ones.
      await expect.poll(() => readdir(join(dataDir, 'shipped')), EVENTUALLY).not.toEqual([]);
      await expect
        .poll(async () => String(await readdir(join(dataDir, 'spool'), { recursive: true })), EVENTUALLY)
        .not.toMatch(/\.(open|scans)/);
      if (both) {
        process.kill(-gateway.pid, 'SIGKILL');
        await gateway.ended;
      }
      await kafka.kill();
      await disk.cut();
      await kafka.start();
      if (both) await gateway.restart();
      await recorder.restart();
      for (const code of codes) expect(await locationOf(urlOf(code))).toBe('https://example.com/');

      const missing = async () => {
        const { stdout } = await run(['events', 'audit', '--json']);
        const { events, routes } = JSON.parse(stdout) as Record<'events' | 'routes', { missing: number }>;
        return { events: events.missing, routes: routes.missing };
      };
      interface Audit {
        answered: number;
        recorded: number;
        waiting: number;
        differences: unknown[];
      }
      const audit = () => json<Audit>('scans', 'audit', '--from', dayOf(Date.now() - DAY_MS));
      expect(await missing()).toEqual({ events: codes.length, routes: codes.length });
      expect(await run(['events', 'republish'])).toMatchObject({ code: 0, stderr: '' });
      await expect.poll(missing, EVENTUALLY).toEqual({ events: 0, routes: 0 });
      // A later scan of the same worker contains the number of the earlier ones.
      // If the gateway's disk has lost the renaming of its segments too, it publishes all of them by itself.
      const recorded = async () => (await audit()).recorded;
      await expect.poll(recorded, EVENTUALLY).toBeGreaterThanOrEqual(early.answered.size + codes.length);
      if (!both) expect(await recorded()).toBe(early.answered.size + codes.length);
      if (!both) expect((await audit()).answered).toBeGreaterThan(early.answered.size + codes.length);
      const since = new Date(Date.now() - 600_000).toISOString();
      const reshipped = await run(['scans', 'reship', '--since', since], {
        DATA_DIR: dataDir,
        KAFKA_BROKERS: kafka.brokers,
        DATABASE_URL: signpost.databaseUrl,
      });
      expect(reshipped).toMatchObject({ code: 0, stderr: '' });
      await expectRecorded(signpost.databaseUrl, scanned, new Map([...early.answered, ...late.answered]));
      const all = early.answered.size + late.answered.size + codes.length;
      // The recorder may still be reading scans again that are recorded already.
      await expect.poll(audit, EVENTUALLY).toMatchObject({ answered: all, recorded: all, waiting: 0, differences: [] });
    },
    240_000,
  );
});

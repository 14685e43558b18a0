import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import kafkajs from 'kafkajs';
import { describe, expect, inject, test } from 'vitest';
import { commandLine } from '../../cli/cli.fixture.ts';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { SCANS } from '../../common/log/topics.ts';
import { DAY_MS } from '../../common/runtime/durations.ts';
import { dayOf } from '../../src/scans/days.ts';
import { afterFile } from '../harness/after-file.ts';
import { startKafka } from '../harness/kafka.ts';
import { type Signpost, startSignpost } from '../harness/processes.ts';
import { counted } from './visitors.ts';

const EVENTUALLY = { timeout: 60_000, interval: 200 };
const SCANNED = 40;
const isOwnBroker = inject('kafkaBrokers') !== null && !process.env.KAFKA_BROKERS;

let signpost: Signpost;
const { json, run } = commandLine(() => signpost);

describe.skipIf(!isOwnBroker)('scans that Kafka acknowledged and lost', () => {
  test('are published again from the disks of gateways, and counted once', async () => {
    const kafka = await startKafka();
    afterFile(() => kafka.stop());
    signpost = await startSignpost({
      kafkaBrokers: kafka.brokers,
      cores: 2,
      gateways: 2,
      roles: ['rpc', 'relay,recorder,worker'],
      env: { SPOOL_RETENTION_HOURS: '1' },
    });
    const { apiKey } = await signpost.createAccount();
    const answer = await fetch(`${signpost.url}/api/v1/qr-codes`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}` },
      body: JSON.stringify({ target_url: 'https://example.com/' }),
    });
    const { data: code } = (await answer.json()) as { data: CodeJson };
    const scan = async (gateway: number) => {
      const url = `${signpost.gateways[gateway]?.url}/r/${code.short_code}`;
      expect((await fetch(url, { redirect: 'manual' })).status).toBe(302);
    };
    const scans = async () => (await counted(signpost.databaseUrl, code)).counter;
    await scan(0);
    await expect.poll(scans, EVENTUALLY).toBe(1);

    // No recorder runs while these are shipped, and then Kafka loses them: half of them in kept segments, the others in
    // segments that are still being written.
    await signpost.cores[1]?.kill();
    const folderOf = (gateway: number) => join(signpost.dataDir, `gateway-${gateway}`);
    for (let n = 1; n < SCANNED / 2; n++) await scan(n % 2);
    for (const gateway of [0, 1]) {
      await expect.poll(() => readdirSync(join(folderOf(gateway), 'shipped')).length, EVENTUALLY).toBeGreaterThan(0);
      await expect
        .poll(() => readdirSync(join(folderOf(gateway), 'spool'), { recursive: true }).join(), EVENTUALLY)
        .not.toMatch(/\.(open|scans)/);
    }
    for (let n = SCANNED / 2; n < SCANNED; n++) await scan(n % 2);
    for (const gateway of [0, 1]) {
      const ready = async () => (await fetch(`${signpost.gateways[gateway]?.url}/readyz`)).json();
      await expect.poll(ready, EVENTUALLY).toMatchObject({ scans: { waiting_bytes: 0 } });
    }
    const admin = new kafkajs.Kafka({ brokers: [kafka.brokers], logLevel: kafkajs.logLevel.NOTHING }).admin();
    await admin.connect();
    await admin.deleteTopics({ topics: [SCANS.name] });
    await admin.disconnect();
    await signpost.cores[1]?.restart();
    interface Audit {
      published: number;
      recorded: number;
      duplicates: number;
      waiting: number;
    }
    const audit = () => json<Audit>('scans', 'audit', '--from', dayOf(Date.now() - DAY_MS));
    await expect.poll(audit, EVENTUALLY).toMatchObject({ recorded: 1, waiting: 0 });

    const reship = async (gateway: number, since: Date) => {
      const env = {
        DATA_DIR: folderOf(gateway),
        KAFKA_BROKERS: kafka.brokers,
        DATABASE_URL: signpost.databaseUrl,
        // The command works without a core.
        CORE_PORT: '1',
      };
      const { code, stdout, stderr } = await run(['scans', 'reship', '--since', since.toISOString(), '--json'], env);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      return JSON.parse(stdout) as { segments: number; scans: number };
    };
    const before = new Date(Date.now() - 600_000);
    const both = [await reship(0, before), await reship(1, before)];
    expect(both.reduce((sum, each) => sum + each.scans, 0)).toBe(SCANNED);
    await expect.poll(scans, EVENTUALLY).toBe(SCANNED);
    expect((await reship(0, before)).scans).toBe(both[0]?.scans);
    expect(await reship(1, new Date())).toEqual({ segments: 0, scans: 0 });
    // All scans shipped a second time are duplicates and not counted.
    const known = both[0]?.scans ?? 0;
    await expect.poll(async () => (await audit()).duplicates, EVENTUALLY).toBeGreaterThanOrEqual(known);
    expect(await audit()).toMatchObject({ recorded: SCANNED, waiting: 0 });
    expect(await scans()).toBe(SCANNED);
  }, 240_000);
});

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { startPostgres } from '../../local/postgres.ts';
import { EventsService } from '../../proto/gen/signpost/events/v1/events_pb.ts';
import { internal } from '../contract/internal.ts';
import { afterFile } from '../harness/after-file.ts';
import { killPostgres } from '../harness/postgres-pair.ts';
import { startSignpost } from '../harness/processes.ts';
import { PowerCutDisk, whyNoPowerCuts } from '../torture/power-cut.ts';
import {
  type CodeWithTargets,
  expectRecorded,
  newClient,
  startChanges,
  startScans,
  withWrongTarget,
} from './power-cut-load.ts';

const EVENTUALLY = { timeout: 60_000, interval: 200 };

const noPowerCuts = await whyNoPowerCuts();
if (noPowerCuts !== undefined) console.error(`${noPowerCuts} The tests of power cuts are skipped.`);

describe.skipIf(noPowerCuts !== undefined)('a power cut', () => {
  test('of Postgres undoes nothing that was acknowledged; cores, outbox and recorder continue', async () => {
    const disk = await PowerCutDisk.create(1_024);
    afterFile(() => disk.close());
    const folder = join(disk.path, 'postgres');
    let postgres = await startPostgres({ folder });
    afterFile(() => postgres.stop());
    const restart = async () => {
      await killPostgres(folder);
      await disk.cut();
      const { url } = postgres;
      postgres = await startPostgres({ folder });
      expect(postgres.url).toBe(url);
    };
    // What the first start has created survives a power cut completely.
    await restart();
    const signpost = await startSignpost({
      databaseUrl: postgres.url,
      gatewayDatabaseUrl: postgres.gatewayUrl,
      cores: 2,
      roles: ['rpc', 'relay,recorder,worker'],
    });
    const client = await newClient(signpost);
    const urlOf = (code: CodeJson) => `${signpost.url}/r/${code.short_code}`;
    const create = () => client.create('https://example.com/');
    const codes = (await Promise.all(Array.from({ length: 40 }, create))) as CodeWithTargets[];
    const created: CodeWithTargets[] = [];
    const { code: scanned } = (await create()) as CodeWithTargets;
    const scans = startScans(urlOf(scanned), 0);

    for (let round = 0; round < 3; round++) {
      const changing = startChanges(codes, client);
      let isRunning = true;
      const creating = (async () => {
        while (isRunning) {
          const code = await client.create(`https://example.com/created/${created.length}`);
          if (code) created.push(code);
          await sleep(20);
        }
      })();
      await sleep(1_000 + 2_000 * Math.random());
      await restart();
      const before = created.length;
      await expect.poll(() => created.length, EVENTUALLY).toBeGreaterThan(before + 5);
      isRunning = false;
      await Promise.all([creating, changing.stop()]);
    }
    await scans.stop();
    expect(client.limited).toBe(0);
    for (const core of signpost.cores) expect(await core.log()).not.toMatch(/"level":60/);

    const database = new pg.Pool({ connectionString: postgres.url });
    onTestFinished(() => database.end());
    const { rows } = await database.query<{ short_code: string; target_url: string }>(
      'select short_code, target_url from codes',
    );
    const kept = new Map(rows.map(({ short_code, target_url }) => [short_code, target_url]));
    for (const { code, targets } of [...codes, ...created]) expect(targets).toContain(kept.get(code.short_code ?? ''));
    const waiting = async () => (await database.query('select from outbox_waiting limit 1')).rowCount;
    await expect.poll(waiting, EVENTUALLY).toBe(0);
    const audit = await internal(signpost, EventsService).auditEvents({});
    expect([audit.events?.missing, audit.routes?.missing].map(Number)).toEqual([0, 0]);
    expect(Number(audit.events?.published)).toBeGreaterThan(created.length);
    await expect.poll(() => withWrongTarget([...codes, ...created], urlOf), EVENTUALLY).toEqual([]);
    await expectRecorded(postgres.url, scanned, scans.answered);
  }, 240_000);
});

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freshDatabase } from '../../../test/harness/database.ts';
import { type Database, openDatabase } from '../../db/database.ts';
import { entities } from '../../entities.ts';
import { DAY_MS } from '../days.ts';
import { auditScans } from '../ledger/audit.ts';
import { scanCounts } from '../reports/scan-counts.ts';
import { newScannedCode, scanRecord } from '../scans.fixture.ts';

let url: string;
let database: Database;
beforeAll(async () => {
  ({ url } = await freshDatabase());
  database = await openDatabase(url, 8, entities);
});
afterAll(() => database.close());

test('a recorder killed in the middle of its work loses no scan and counts none twice', async () => {
  const scanned = newScannedCode();
  const polls = Array.from({ length: 10 }, () => Array.from({ length: 300 }, () => scanRecord(scanned)));
  const values = polls.map((poll) => poll.map(({ value }) => Buffer.from(value ?? []).toString('base64')));
  const killed = new Set<number>();
  for (let next = 0; next < polls.length; ) {
    const child = fork(new URL('./recorder-process.fixture.ts', import.meta.url), [url], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    child.send(values.slice(next));
    // Each child is killed at a different moment of its second poll, which is then delivered again as by the log.
    const [done] = (await once(child, 'message')) as [number];
    await new Promise((resolve) => setTimeout(resolve, next * 2));
    child.kill('SIGKILL');
    await once(child, 'exit');
    killed.add(next);
    next += done;
  }
  expect(killed.size).toBe(10);
  const { accountId, codeId } = scanned;
  expect((await scanCounts(database.pool, accountId, [codeId])).get(codeId)).toBe(3_000);
  const audit = await auditScans(database, { from: Date.UTC(2020, 0, 1), to: Date.now() + DAY_MS });
  expect(audit).toMatchObject({ counted: audit.rows, differences: [] });
});

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { freshDatabase } from '../../../test/harness/database.ts';
import { entities } from '../../entities.ts';
import { archiveMonths } from '../../scans/archive/archive.ts';
import { auditScans } from '../../scans/ledger/audit-scans.ts';
import { inMemoryLog, newScannedCode, pollHandler, scanRecord } from '../../scans/scans.fixture.ts';
import { openDatabase } from '../database.ts';

test('months archived to a table before can be moved to a file, and the previous version deletes the counters too', async () => {
  const database = await openDatabase((await freshDatabase()).url, 6, entities);
  onTestFinished(() => database.close());
  const { pool } = database;
  const folder = await mkdtemp(join(tmpdir(), 'signpost-archive-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const record = pollHandler({ log: inMemoryLog(), database, logger: pino({ level: 'silent' }) });
  const code = newScannedCode();
  await record([scanRecord(code, { at: Date.UTC(2022, 0, 15) })]);
  await archiveMonths(pool, { hotMonths: 1, to: 'table', folder }, Date.now());
  // The schema of the previous version.
  await pool.query(`
    drop table scan_targets;
    drop function delete_scan_targets cascade;
    alter table scans drop column target_version, drop column target_rule, drop column target_variant;
    alter table scans_2022_01_part1
      drop column target_version, drop column target_rule, drop column target_variant;
    delete from migrations where name = '0022-scan-targets'`);
  await database.migrate();

  await archiveMonths(pool, { hotMonths: 1, to: 'file', folder }, Date.now());
  await record([scanRecord(code, { targetVersion: 2 })]);
  const audit = await auditScans(database, { from: Date.UTC(2022, 0, 1), to: Date.now() });
  expect(audit).toMatchObject({ archived: 1, rows: 1, differences: [] });
  await pool.query('delete from scan_days where code_id = $1', [code.codeId]);
  expect((await pool.query('select from scan_targets')).rows).toHaveLength(0);
});

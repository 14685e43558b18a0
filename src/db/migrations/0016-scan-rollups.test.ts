import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { newUuid } from '../../../common/contract/ids.ts';
import { DAY_MS } from '../../../common/runtime/durations.ts';
import { freshDatabase } from '../../../test/harness/database.ts';
import { entities } from '../../entities.ts';
import { foldIncrements } from '../../scans/fold-increments.ts';
import { auditScans } from '../../scans/ledger/audit-scans.ts';
import { inMemoryLog, newScannedCode, pollHandler, scanRecord, visitor } from '../../scans/scans.fixture.ts';
import { openDatabase } from '../database.ts';

test('scans recorded before, during and after the migration, by either version, are counted in weeks and accounts', async () => {
  const database = await openDatabase((await freshDatabase()).url, 6, entities);
  onTestFinished(() => database.close());
  const { pool } = database;
  // The schema of the previous version, whose recorder writes the counters of days like this one.
  await pool.query(`
    drop table scan_increments, scan_rollups;
    drop function note_scan_days, note_scan_values cascade;
    delete from migrations where name = '0016-scan-rollups'`);
  const record = pollHandler({ log: inMemoryLog(), database, logger: pino({ level: 'silent' }) });
  const accountId = newUuid();
  const codes = Array.from({ length: 5 }, () => ({ ...newScannedCode(), accountId }));
  const now = Date.now();
  const poll = (days: number) =>
    codes.flatMap((code, index) =>
      Array.from({ length: days }, (_, day) =>
        scanRecord(code, {
          at: now - day * DAY_MS,
          country: ['DE', 'FR', 'GB'][day % 3] as string,
          referrerHost: day % 4 === 0 ? '' : `r${day + index}.example`,
          visitor: visitor(day % 2),
        }),
      ),
    );
  await record(poll(40));
  await record(poll(10));

  // A recorder within its transaction: it has written days and values and waits to write totals.
  const blocking = await pool.connect();
  await blocking.query('begin; lock table scan_totals in exclusive mode');
  const waiting = async () => {
    const { rows } = await blocking.query<{ waiting: number }>(
      `select count(*)::integer as waiting from pg_locks
       where not granted and database = (select oid from pg_database where datname = current_database())`,
    );
    return rows[0]?.waiting;
  };
  const recorded = record(poll(3));
  await expect.poll(waiting).toBe(1);
  const migrated = database.migrate();
  await expect.poll(waiting).toBe(2);
  await blocking.query('commit');
  blocking.release();
  await Promise.all([recorded, migrated]);
  await record(poll(20));

  const { rows } = await pool.query<{ scans: string }>('select sum(scans) as scans from scan_rollups where days = 1');
  expect(Number(rows[0]?.scans)).toBeGreaterThanOrEqual(5 * 50);
  for (const fold of [async () => undefined, () => foldIncrements(pool)]) {
    await fold();
    const audit = await auditScans(database, { from: now - 60 * DAY_MS, to: now });
    expect(audit).toMatchObject({ counted: 5 * 73, differences: [] });
  }
});

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { LogRecord } from '../../../common/log/log.ts';
import { isUnavailable } from '../../../common/postgres/unavailable.ts';
import { freshDatabase } from '../../../test/harness/database.ts';
import { codeAnalytics } from '../../analytics/code-analytics.ts';
import { type Database, openDatabase } from '../../db/database.ts';
import { entities } from '../../entities.ts';
import { DAY_MS } from '../days.ts';
import { askToDelete, deleteAccountScans, finishDeletions } from '../delete-account-scans.ts';
import { auditScans } from '../ledger/audit.ts';
import { recordingOf } from '../recording/recorder.ts';
import { scanCounts } from '../reports/totals.ts';
import { keepingLog, newScanned, type Scanned, scanRecord } from '../scans.fixture.ts';
import { archiveMonths } from './archive.ts';

let url: string;
let database: Database;
let folder: string;
let handle: Awaited<ReturnType<typeof recordingOf>>;

beforeEach(async () => {
  ({ url } = await freshDatabase());
  database = await openDatabase(url, 8, entities);
  handle = await recordingOf({ log: keepingLog(), database, logger: pino({ level: 'silent' }) });
  folder = mkdtempSync(join(tmpdir(), 'signpost-archive-'));
});
afterEach(async () => {
  await expectAgreement();
  await database.close();
  rmSync(folder, { recursive: true });
});

/** Noon on the 15th of a month long ago. */
const at = (month: number) => Date.UTC(2022, month, 15, 12);

const archive = (to: 'table' | 'file' = 'file') =>
  archiveMonths(database.pool, { hotMonths: 1, to, folder }, Date.now());

/** A poll comes again until it is recorded: a month that is taken out under it fails it. */
async function deliver(records: readonly LogRecord[]): Promise<void> {
  while (
    !(await handle(records).then(
      () => true,
      () => false,
    ))
  );
}

function scansOf(scanned: Scanned, time: number, count: number) {
  return Array.from({ length: count }, (_, index) => scanRecord(scanned, { at: time + index }));
}

async function total({ accountId, codeId }: Scanned): Promise<number> {
  return (await scanCounts(database.pool, accountId, [codeId])).get(codeId) ?? 0;
}

async function figures({ accountId, codeId }: Scanned, time: number) {
  const { figures } = await codeAnalytics(database, { accountId, codeId, period: 30, now: time + 2 * DAY_MS });
  return figures;
}

async function hotRows({ codeId }: Scanned): Promise<number> {
  const { rows } = await database.pool.query('select from scans where code_id = $1', [codeId]);
  return rows.length;
}

/** The lines of all files, without their headings. */
function archivedLines(): string[] {
  return readdirSync(folder).flatMap((name) => {
    expect(name).toMatch(/^scans-2022-\d\d-part\d\.csv\.gz$/);
    return gunzipSync(readFileSync(join(folder, name)))
      .toString()
      .trimEnd()
      .split('\n')
      .slice(1);
  });
}

async function tables(): Promise<string[]> {
  const { rows } = await database.pool.query(
    `select relname from pg_class where relname like 'scans\\_2022%' and relkind = 'r' order by 1`,
  );
  return rows.map(({ relname }) => relname);
}

async function expectAgreement() {
  const audit = await auditScans(database, { from: Date.UTC(2020, 0, 1), to: Date.now() + DAY_MS });
  expect(audit.differences).toEqual([]);
  expect(audit.counted).toBe(audit.rows);
  return audit;
}

describe.each(['table', 'file'] as const)('a month that is archived to a %s', (to) => {
  test('leaves the hot table, and neither totals nor breakdowns shrink', async () => {
    const scanned = newScanned();
    const records = scansOf(scanned, at(0), 2_500);
    await handle(records);
    const before = await figures(scanned, at(0));
    expect(before.scans).toBe(2_500n);
    await archive(to);
    expect(await hotRows(scanned)).toBe(0);
    expect(await total(scanned)).toBe(2_500);
    expect(await figures(scanned, at(0))).toEqual(before);
    expect(await expectAgreement()).toMatchObject({ rows: 0, archived: 2_500 });
  });

  test('is never counted again, also where half of a poll is new, and late scans land in their own day', async () => {
    const scanned = newScanned();
    const records = scansOf(scanned, at(1), 1_500);
    await handle(records);
    await archive(to);
    const late = scansOf(scanned, at(1) + DAY_MS, 40);
    await deliver(records);
    await deliver([...records.slice(0, 700), ...late]);
    expect(await total(scanned)).toBe(1_540);
    expect(await hotRows(scanned)).toBe(40);
    const day = (await figures(scanned, at(1) + DAY_MS)).intervals?.find(({ start }) => start === '2022-02-16');
    expect(day?.scans).toBe(40n);
    // The late ones make a part of their own, and they too are known for good.
    await archive(to);
    expect(await hotRows(scanned)).toBe(0);
    await deliver([...late, ...records]);
    await archive(to);
    expect(await total(scanned)).toBe(1_540);
    const { ledger } = await expectAgreement();
    expect(ledger.recorded).toBe(1_540);
  });

  test('goes on counting exactly while recorders bring the same scans again', async () => {
    const scanned = newScanned();
    const polls = Array.from({ length: 6 }, (_, poll) => scansOf(scanned, at(2) + poll * 1_000, 300));
    for (const poll of polls) await handle(poll);
    const again = async () => {
      for (const poll of [...polls, ...polls]) {
        await deliver(poll);
      }
    };
    const archiving = async () => {
      for (let round = 0; round < 5; round++) await archive(to).catch(() => undefined);
    };
    await Promise.all([again(), again(), archiving()]);
    await archive(to);
    expect(await total(scanned)).toBe(1_800);
    expect(await expectAgreement()).toMatchObject({ archived: 1_800 });
  });
});

test('this month and the one before stay, and nothing is archived unless it is wanted', async () => {
  const scanned = newScanned();
  const now = Date.UTC(2022, 7, 1);
  await handle([...scansOf(scanned, at(7), 1), ...scansOf(scanned, at(6), 1), ...scansOf(scanned, at(5), 1)]);
  await archiveMonths(database.pool, { hotMonths: 0, to: 'file', folder }, now);
  expect(await hotRows(scanned)).toBe(3);
  await archiveMonths(database.pool, { hotMonths: 1, to: 'file', folder }, now);
  expect(await hotRows(scanned)).toBe(2);
});

test('a table becomes a file when files are wanted later', async () => {
  const scanned = newScanned();
  await handle(scansOf(scanned, at(3), 10));
  await archive('table');
  expect(await tables()).toContain('scans_2022_04_part1');
  await archive('file');
  expect(await tables()).not.toContain('scans_2022_04_part1');
  expect(archivedLines()).toHaveLength(10);
});

test('killed at any moment, it has every scan in one place, and once', async () => {
  const scanned = newScanned();
  const months = [0, 1, 2, 3];
  const records = months.flatMap((month) => scansOf(scanned, at(month), 4_000));
  await handle(records);
  let killed = 0;
  for (const delay of [0, 30, 60, 100, 150, 10_000]) {
    const child = fork(new URL('./archive-process.fixture.ts', import.meta.url), [url, folder], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    const ended = once(child, 'exit');
    await Promise.race([once(child, 'message'), ended]);
    const timer = setTimeout(() => child.kill('SIGKILL'), delay);
    const [code] = await ended;
    clearTimeout(timer);
    if (code === null) killed++;
  }
  expect(killed).toBeGreaterThan(0);
  expect(await tables()).toEqual([]);
  const ids = archivedLines().map((line) => line.split(',')[0]);
  expect(ids).toHaveLength(records.length);
  expect(new Set(ids).size).toBe(records.length);
  expect(await total(scanned)).toBe(records.length);
  expect(await expectAgreement()).toMatchObject({ archived: records.length });
});

test('a line of a file has every column', async () => {
  const scanned = newScanned();
  const record = scanRecord(scanned, { at: at(4), referrerHost: 'example.org' });
  await handle([record]);
  const { rows } = await database.pool.query('select id, visitor from scans where code_id = $1', [scanned.codeId]);
  await archive();
  expect(archivedLines()).toEqual([
    [
      ...[rows[0].id, '2022-05-15T12:00:00.000Z', scanned.accountId, scanned.codeId, 'person', '1', 'GB', 'mobile'],
      ...['iOS', 'Safari', 'example.org', rows[0].visitor],
    ].join(','),
  ]);
});

test('a disk that takes no archive keeps the month in a table and holds nothing else up, and is tried again', async () => {
  const scanned = newScanned();
  await handle(scansOf(scanned, at(9), 20_000));
  // Nothing is there that could be written to; then a file that is full from the start.
  await expect(
    archiveMonths(database.pool, { hotMonths: 1, to: 'file', folder: '/dev/null/archive' }, Date.now()),
  ).rejects.toThrow();
  const draft = join(folder, 'scans-2022-10-part1.csv.gz.draft');
  symlinkSync('/dev/full', draft);
  await expect(archive()).rejects.toThrow(/ENOSPC/);
  rmSync(draft);
  expect(await tables()).toEqual(['scans_2022_10_part1']);
  await archive();
  expect(archivedLines()).toHaveLength(20_000);
  expect(await tables()).toEqual([]);
}, 20_000);

describe('deleting the scans of an account', () => {
  test('takes them from the table, from archives of both kinds and from every counter, and no others', async () => {
    const [gone, stays] = [newScanned(), newScanned()];
    for (const month of [0, 1]) await handle([...scansOf(gone, at(month), 20), ...scansOf(stays, at(month), 30)]);
    await archive('file');
    await handle([...scansOf(gone, at(2), 20), ...scansOf(stays, at(2), 30)]);
    await archive('table');
    await handle([...scansOf(gone, Date.now() - 5_000, 20), ...scansOf(stays, Date.now() - 5_000, 30)]);
    await deleteAccountScans(database.pool, folder, gone.accountId);
    expect(archivedLines().filter((line) => line.includes(gone.accountId))).toEqual([]);
    expect(archivedLines()).toHaveLength(60);
    for (const table of ['scans', 'scans_2022_03_part1', 'scan_days', 'scan_hours', 'scan_values', 'scan_totals']) {
      const { rows } = await database.pool.query(`select from ${table} where account_id = $1`, [gone.accountId]);
      expect({ table, rows: rows.length }).toEqual({ table, rows: 0 });
    }
    const { rows } = await database.pool.query('select from scan_visitors where code_id = $1', [gone.codeId]);
    expect(rows).toEqual([]);
    expect(await total(stays)).toBe(120);
    expect((await expectAgreement()).ledger).toMatchObject({ recorded: 200, deleted: 80 });
  });

  test('also takes those that were answered before and come later, and none that were answered since', async () => {
    const scanned = newScanned();
    const before = scansOf(scanned, Date.now() - 60_000, 10);
    await handle(before.slice(0, 5));
    await deleteAccountScans(database.pool, folder, scanned.accountId);
    await handle(before);
    expect(await total(scanned)).toBe(0);
    await handle(scansOf(scanned, Date.now() + 1_000, 3));
    expect(await total(scanned)).toBe(3);
    // A later call begins with what came since.
    await deleteAccountScans(database.pool, folder, scanned.accountId);
    expect(await total(scanned)).toBe(0);
    await expectAgreement();
  });

  test('is finished by another process where the one that was asked has died', async () => {
    const scanned = newScanned();
    await handle(scansOf(scanned, Date.now() - 60_000, 10));
    await askToDelete(database.pool, scanned.accountId);
    await finishDeletions(database.pool, folder);
    expect(await hotRows(scanned)).toBe(0);
    expect(await total(scanned)).toBe(0);
  });

  test('gives way to recorders that it can not lock out, says that it can be tried again, and then goes on', async () => {
    const scanned = newScanned();
    await handle(scansOf(scanned, Date.now() - 60_000, 10));
    const stuck = await database.pool.connect();
    onTestFinished(() => stuck.release());
    await stuck.query('begin; lock table scans in row exclusive mode');
    const deleting: Promise<unknown> = deleteAccountScans(database.pool, folder, scanned.accountId).then(
      () => 'deleted',
      (error: unknown) => error,
    );
    const gaveWay = await Promise.race([deleting, sleep(20_000, 'still waiting')]);
    await stuck.query('rollback');
    expect(gaveWay).toSatisfy(isUnavailable);
    await deleteAccountScans(database.pool, folder, scanned.accountId);
    expect(await total(scanned)).toBe(0);
  }, 60_000);

  test('leaves every counter right while recorders go on with the same code', async () => {
    const scanned = newScanned();
    const recorder = async () => {
      for (let poll = 0; poll < 40; poll++) {
        const records = scansOf(scanned, Date.now() + 60_000, 20);
        await deliver(records);
      }
    };
    const deleting = async () => {
      for (let round = 0; round < 8; round++) await deleteAccountScans(database.pool, folder, scanned.accountId);
    };
    await Promise.all([recorder(), recorder(), deleting()]);
    const { ledger } = await expectAgreement();
    expect(await total(scanned)).toBe(1_600 - ledger.deleted);
  });
});

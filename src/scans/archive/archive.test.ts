import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { Code } from '@connectrpc/connect';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RULES_VERSION } from '../../../common/contract/user-agent.ts';
import type { LogRecord } from '../../../common/log/log.ts';
import { MAY_BE_IDLE } from '../../../common/postgres/connection-options.ts';
import type { Queryable } from '../../../common/postgres/sql.ts';
import { transaction } from '../../../common/postgres/sql.ts';
import { isLockTimeout, isUnavailable } from '../../../common/postgres/unavailable.ts';
import { DAY_MS } from '../../../common/runtime/durations.ts';
import { freshDatabase } from '../../../test/harness/database.ts';
import { codeAnalytics } from '../../analytics/code-analytics.ts';
import { type Database, openDatabase } from '../../db/database.ts';
import { entities } from '../../entities.ts';
import { deleteAccountScans, finishDeletions, requestDeletion } from '../delete-account-scans.ts';
import { auditScans } from '../ledger/audit-scans.ts';
import { startRecorder } from '../recording/recorder.ts';
import { scanCounts } from '../reports/scan-counts.ts';
import { readScanPages } from '../reports/scan-pages.ts';
import { inMemoryLog, newScannedCode, pollHandler, type ScannedCode, scanRecord } from '../scans.fixture.ts';
import { archiveMonths, lockArchives } from './archive.ts';

let url: string;
let database: Database;
let folder: string;
let handle: ReturnType<typeof pollHandler>;

beforeEach(async () => {
  ({ url } = await freshDatabase());
  database = await openDatabase(url, 8, entities);
  handle = pollHandler({ log: inMemoryLog(), database, logger: pino({ level: 'silent' }) });
  folder = mkdtempSync(join(tmpdir(), 'signpost-archive-'));
});
afterEach(async () => {
  await expectCleanAudit();
  await database.close();
  rmSync(folder, { recursive: true });
});

/** Noon on the 15th of a month of 2022. */
const at = (month: number) => Date.UTC(2022, month, 15, 12);

const archive = (to: 'table' | 'file' = 'file') =>
  archiveMonths(database.pool, { hotMonths: 1, to, folder }, Date.now());

/** Starts a recorder, which begins with its hourly upkeep. */
const upkeep = () => {
  const logger = pino({ level: 'silent' });
  return startRecorder({ log: inMemoryLog(), database, logger, archive: { hotMonths: 1, to: 'file', folder } });
};

/** How many transactions wait for a lock. */
async function waiting(): Promise<number> {
  const { rows } = await database.pool.query(
    `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return rows.length;
}

/** Redelivers a poll until it is recorded: it fails when a month is detached meanwhile. */
async function deliver(records: readonly LogRecord[]): Promise<void> {
  while (
    !(await handle(records).then(
      () => true,
      () => false,
    ))
  );
}

function scansOf(scanned: ScannedCode, time: number, count: number) {
  return Array.from({ length: count }, (_, index) => scanRecord(scanned, { at: time + index }));
}

async function total({ accountId, codeId }: ScannedCode): Promise<number> {
  return (await scanCounts(database.pool, accountId, [codeId])).get(codeId) ?? 0;
}

async function figures({ accountId, codeId }: ScannedCode, time: number) {
  const { figures } = await codeAnalytics(database.pool, { accountId, codeId, period: 30, now: time + 2 * DAY_MS });
  return figures;
}

async function hotRows({ codeId }: ScannedCode): Promise<number> {
  const { rows } = await database.pool.query('select from scans where code_id = $1', [codeId]);
  return rows.length;
}

/** The lines of all files, without their headers. */
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

async function expectCleanAudit() {
  const audit = await auditScans(database, { from: Date.UTC(2020, 0, 1), to: Date.now() + DAY_MS });
  expect(audit.differences).toEqual([]);
  expect(audit.counted).toBe(audit.rows);
  return audit;
}

test('reading scans fails if a month is archived before all of it was read, and only then', async () => {
  const scanned = newScannedCode();
  await handle([...scansOf(scanned, at(0), 1_500), ...scansOf(scanned, at(1), 1_500)]);
  const window = { accountId: scanned.accountId, from: at(0), to: at(2) };
  const pages = readScanPages(database.pool, window);
  await pages.next();
  await archive('table');
  await expect(pages.next()).rejects.toThrow('Scans of 2022-01 are archived');
  await expect(readScanPages(database.pool, window).next()).rejects.toThrow('Scans of 2022-01 are archived');
  expect(await Array.fromAsync(readScanPages(database.pool, { ...window, from: at(3), to: at(4) }))).toEqual([]);
});

test('reading scans continues if a month is archived after all of it was read', async () => {
  const scanned = newScannedCode();
  const now = Date.now();
  await handle([...scansOf(scanned, at(0), 500), ...scansOf(scanned, now - 1_500, 1_500)]);
  const pages = readScanPages(database.pool, { accountId: scanned.accountId, from: at(0), to: now });
  expect((await pages.next()).value).toHaveLength(1_000);
  await archive('table');
  expect((await pages.next()).value).toHaveLength(1_000);
});

test('reading scans fails if a month is archived just before they are read', async () => {
  const scanned = newScannedCode();
  await handle(scansOf(scanned, at(0), 3));
  const archivesFirst: Queryable = {
    query: async (query) => {
      if (query.name === 'scans_list_of_account') await archive('table');
      return database.pool.query(query);
    },
  };
  const window = { accountId: scanned.accountId, from: at(0), to: at(1) };
  await expect(readScanPages(archivesFirst, window).next()).rejects.toThrow('are archived');
});

test('a scan of the latest month that can be archived is not recorded again', async () => {
  const scanned = newScannedCode();
  const today = new Date();
  const records = scansOf(scanned, Date.UTC(today.getUTCFullYear(), today.getUTCMonth() - 2, 15), 3);
  await handle(records);
  await archive('table');
  expect(await hotRows(scanned)).toBe(0);
  await deliver(records);
  expect(await total(scanned)).toBe(3);
});

test('a scan whose month is archived at the turn of a month, after its poll was decoded, is not recorded again', async () => {
  const scanned = newScannedCode();
  const records = scansOf(scanned, at(0), 3);
  await handle(records);
  await archive('table');
  const pool = new Proxy(database.pool, {
    get(target, name) {
      const value = Reflect.get(target, name, target);
      if (name !== 'query') return typeof value === 'function' ? value.bind(target) : value;
      return (query: { name?: string }) =>
        query.name === 'postgres_clock' ? { rows: [{ now: Date.UTC(2022, 2, 1) - 1 }] } : target.query(query as never);
    },
  });
  await pollHandler({ log: inMemoryLog(), database: { ...database, pool }, logger: pino({ level: 'silent' }) })(
    records,
  );
  expect(await total(scanned)).toBe(3);
});

test('a deletion that is requested again applies to scans up to then, those that arrive later included', async () => {
  const scanned = newScannedCode();
  await deleteAccountScans(database.pool, folder, scanned.accountId);
  const between = Date.now();
  await handle([scanRecord(scanned, { at: between })]);
  expect(await total(scanned)).toBe(1);
  await requestDeletion(database.pool, scanned.accountId);
  await finishDeletions(database.pool, folder);
  expect(await total(scanned)).toBe(0);
  await handle([scanRecord(scanned, { at: between })]);
  expect(await total(scanned)).toBe(0);
});

describe.each(['table', 'file'] as const)('a month that is archived to a %s', (to) => {
  test('leaves the hot table, and neither totals nor breakdowns shrink', async () => {
    const scanned = newScannedCode();
    const records = scansOf(scanned, at(0), 2_500);
    await handle(records);
    const before = await figures(scanned, at(0));
    expect(before.scans).toBe(2_500n);
    await archive(to);
    expect(await hotRows(scanned)).toBe(0);
    expect(await total(scanned)).toBe(2_500);
    expect(await figures(scanned, at(0))).toEqual(before);
    expect(await expectCleanAudit()).toMatchObject({ rows: 0, archived: 2_500 });
  });

  test('is never counted again, even in a partly new poll, and late scans count on their own day', async () => {
    const scanned = newScannedCode();
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
    // The late scans form a second part, whose ids are stored too.
    await archive(to);
    expect(await hotRows(scanned)).toBe(0);
    await deliver([...late, ...records]);
    await archive(to);
    expect(await total(scanned)).toBe(1_540);
    const { ledger } = await expectCleanAudit();
    expect(ledger.recorded).toBe(1_540);
  });

  test('keeps exact counts while recorders redeliver the same scans', async () => {
    const scanned = newScannedCode();
    const polls = Array.from({ length: 6 }, (_, poll) => scansOf(scanned, at(2) + poll * 1_000, 300));
    for (const poll of polls) await handle(poll);
    const redeliver = async () => {
      for (const poll of [...polls, ...polls]) {
        await deliver(poll);
      }
    };
    const archiving = async () => {
      for (let round = 0; round < 5; round++) await archive(to).catch(() => undefined);
    };
    await Promise.all([redeliver(), redeliver(), archiving()]);
    await archive(to);
    expect(await total(scanned)).toBe(1_800);
    expect(await expectCleanAudit()).toMatchObject({ archived: 1_800 });
  });
});

test('the current month and the one before stay, and nothing is archived when archiving is off', async () => {
  const scanned = newScannedCode();
  const now = Date.UTC(2022, 7, 1);
  await handle([...scansOf(scanned, at(7), 1), ...scansOf(scanned, at(6), 1), ...scansOf(scanned, at(5), 1)]);
  await archiveMonths(database.pool, { hotMonths: 0, to: 'file', folder }, now);
  expect(await hotRows(scanned)).toBe(3);
  await archiveMonths(database.pool, { hotMonths: 1, to: 'file', folder }, now);
  expect(await hotRows(scanned)).toBe(2);
});

test('an archive table becomes a file once files are configured', async () => {
  const scanned = newScannedCode();
  await handle(scansOf(scanned, at(3), 10));
  await archive('table');
  expect(await tables()).toContain('scans_2022_04_part1');
  await archive('file');
  expect(await tables()).not.toContain('scans_2022_04_part1');
  expect(archivedLines()).toHaveLength(10);
});

test('archiving that is killed at any moment leaves every scan in exactly one place', async () => {
  const scanned = newScannedCode();
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
  expect(await expectCleanAudit()).toMatchObject({ archived: records.length });
}, 90_000);

test('a line of an archive file has every column', async () => {
  const scanned = newScannedCode();
  const record = scanRecord(scanned, { at: at(4), referrerHost: 'example.org' });
  await handle([record]);
  const { rows } = await database.pool.query('select id, visitor from scans where code_id = $1', [scanned.codeId]);
  await archive();
  expect(archivedLines()).toEqual([
    [
      ...[
        rows[0].id,
        '2022-05-15T12:00:00.000Z',
        scanned.accountId,
        scanned.codeId,
        'person',
        String(RULES_VERSION),
        'GB',
        'mobile',
      ],
      ...['iOS', 'Safari', 'example.org', rows[0].visitor, '', '', ''],
    ].join(','),
  ]);
});

test('targets are archived, stay counted, and survive the deletion of another account from the file', async () => {
  const [deleted, retained] = [newScannedCode(), newScannedCode()];
  const decided = (scanned: ScannedCode) => [
    scanRecord(scanned, { at: at(5), targetVersion: 2, targetRule: 1, targetVariant: 'Größe, "XL"' }),
    scanRecord(scanned, { at: at(5) + 1, targetVersion: 2 }),
    scanRecord(scanned, { at: at(5) + 2 }),
  ];
  await handle([...decided(deleted), ...decided(retained)]);
  const before = await figures(retained, at(5));
  expect(before.targets).toEqual([
    { version: 2, rule: 0, variant: '', scans: 1n },
    { version: 2, rule: 1, variant: 'Größe, "XL"', scans: 1n },
  ]);
  await archive();
  await deleteAccountScans(database.pool, folder, deleted.accountId);
  expect(archivedLines().map((line) => line.split(',').slice(12).join(','))).toEqual([
    '2,1,"Größe, ""XL"""',
    '2,0,""',
    ',,',
  ]);
  expect(await figures(retained, at(5))).toEqual(before);
  expect((await figures(deleted, at(5))).targets).toEqual([]);
});

test('when the disk refuses the archive, the month stays in a table, nothing else is blocked, and it is retried', async () => {
  const scanned = newScannedCode();
  await handle(scansOf(scanned, at(9), 20_000));
  // First a folder that cannot exist, then a file on a full disk.
  await expect(
    archiveMonths(database.pool, { hotMonths: 1, to: 'file', folder: '/dev/null/archive' }, Date.now()),
  ).rejects.toThrow();
  const draft = join(folder, 'scans-2022-10-part1.csv.gz.draft');
  symlinkSync('/dev/full', draft);
  await expect(archive()).rejects.toThrow(/ENOSPC/);
  // What was written is removed, so that it neither fills the disk nor keeps scans.
  expect(readdirSync(folder)).toEqual([]);
  expect(await tables()).toEqual(['scans_2022_10_part1']);
  await archive();
  expect(archivedLines()).toHaveLength(20_000);
  expect(await tables()).toEqual([]);
});

test('an archive that is being moved to a file when the recorder stops is moved later', async () => {
  await handle(scansOf(newScannedCode(), at(9), 10));
  await archive('table');
  await transaction(database.pool, async (tx) => {
    await tx.query(MAY_BE_IDLE);
    await tx.query('lock table scans_2022_10_part1');
    const recorder = upkeep();
    await expect.poll(waiting).toBe(1);
    await recorder.stop();
    expect(readdirSync(folder)).toEqual([]);
  });
  await archive();
  expect(archivedLines()).toHaveLength(10);
});

test('an archive that a backup is reading is moved later, and does not keep the archives locked', async () => {
  const scanned = newScannedCode();
  await handle(scansOf(scanned, at(9), 10));
  await archive('table');
  await transaction(database.pool, async (tx) => {
    await tx.query(MAY_BE_IDLE);
    await tx.query('lock table scans_2022_10_part1 in access share mode');
    await expect(archive()).rejects.toSatisfy(isLockTimeout);
    await transaction(database.pool, lockArchives);
  });
  expect(await tables()).toEqual(['scans_2022_10_part1']);
  await archive();
  expect(archivedLines()).toHaveLength(10);
  expect(await tables()).toEqual([]);
});

test('an archive that can’t be moved to a file does not keep others in tables', async () => {
  const scanned = newScannedCode();
  for (const month of [6, 7]) await handle(scansOf(scanned, at(month), 10));
  await archive('table');
  await database.pool.query('alter table scans_2022_07_part1 rename to elsewhere');
  await expect(archive()).rejects.toThrow('scans_2022_07_part1');
  expect(archivedLines()).toHaveLength(10);
  await database.pool.query('alter table elsewhere rename to scans_2022_07_part1');
  await archive();
  expect(archivedLines()).toHaveLength(20);
});

describe('deleting the scans of an account', () => {
  test('says which archive can’t be rewritten, and is finished when it can', async () => {
    const [deleted, retained] = [newScannedCode(), newScannedCode()];
    await handle([...scansOf(deleted, at(10), 2), ...scansOf(retained, at(10), 3)]);
    await archive();
    const file = join(folder, 'scans-2022-11-part1.csv.gz');
    symlinkSync('/dev/full', `${file}.draft`);
    await expect(deleteAccountScans(database.pool, folder, deleted.accountId)).rejects.toMatchObject({
      code: Code.Unavailable,
      rawMessage: expect.stringMatching(
        new RegExp(`^The archive ${file} can't be rewritten; that is tried again every hour: ENOSPC: `),
      ),
    });
    expect(archivedLines()).toHaveLength(5);
    await finishDeletions(database.pool, folder);
    expect(archivedLines()).toHaveLength(3);
  });

  test('is finished by recorders, which go on archiving while it fails', async () => {
    const [deleted, retained] = [newScannedCode(), newScannedCode()];
    const scansIn = (month: number) => [...scansOf(deleted, at(month), 2), ...scansOf(retained, at(month), 3)];
    await handle(scansIn(0));
    await archive();
    await handle(scansIn(1));
    await requestDeletion(database.pool, deleted.accountId);
    const archiveUntil = async (lines: number) => {
      const recorder = upkeep();
      await expect.poll(archivedLines).toHaveLength(lines);
      await recorder.stop();
    };
    symlinkSync('/dev/full', join(folder, 'scans-2022-01-part1.csv.gz.draft'));
    await archiveUntil(5 + 3);
    await archiveUntil(3 + 3);
  });

  test('ends after the code at hand when the recorder stops, and continues later', async () => {
    const { accountId } = newScannedCode();
    const codes = Array.from({ length: 3 }, () => ({ ...newScannedCode(), accountId }));
    for (const each of codes) await handle(scansOf(each, at(0), 2));
    await requestDeletion(database.pool, accountId);
    let stopped: Promise<void> | undefined;
    await transaction(database.pool, async (tx) => {
      await tx.query(MAY_BE_IDLE);
      await tx.query('select from scan_totals where code_id = $1 for update', [codes[1]?.codeId]);
      const recorder = upkeep();
      await expect.poll(waiting).toBe(1);
      stopped = recorder.stop();
    });
    await stopped;
    expect(await Promise.all(codes.map(total))).toEqual([0, 0, 2]);
    await finishDeletions(database.pool, folder);
    expect(await Promise.all(codes.map(total))).toEqual([0, 0, 0]);
  });

  test('is finished by one process at a time, and others do not wait for it', async () => {
    const deleted = newScannedCode();
    await handle(scansOf(deleted, at(0), 2));
    await requestDeletion(database.pool, deleted.accountId);
    let finished: Promise<void> | undefined;
    await transaction(database.pool, async (tx) => {
      // The first one waits for this.
      await tx.query(MAY_BE_IDLE);
      await tx.query('lock table scan_totals');
      finished = finishDeletions(database.pool, folder);
      await expect.poll(waiting).toBe(1);
      await finishDeletions(database.pool, folder);
    });
    await finished;
    expect(await total(deleted)).toBe(0);
  });

  test.each(['damaged', 'empty'])('goes on with all that does not need an archive that is %s', async (state) => {
    const accounts = [newScannedCode(), newScannedCode()];
    for (const month of [0, 1]) for (const each of accounts) await handle(scansOf(each, at(month), 10));
    await archive();
    const file = join(folder, 'scans-2022-01-part1.csv.gz');
    const whole = readFileSync(file);
    writeFileSync(file, state === 'empty' ? '' : whole.subarray(0, whole.length - 20));
    for (const { accountId } of accounts) await requestDeletion(database.pool, accountId);
    await expect(finishDeletions(database.pool, folder)).rejects.toThrow(file);
    expect(gunzipSync(readFileSync(join(folder, 'scans-2022-02-part1.csv.gz'))).toString()).toMatch(/^id,.*\n$/);
    expect(await Promise.all(accounts.map(total))).toEqual([0, 0]);
    writeFileSync(file, whole);
    await finishDeletions(database.pool, folder);
    expect(archivedLines()).toEqual([]);
  });

  test('removes them from the table, from both kinds of archive and from every counter, and no others', async () => {
    const [deleted, retained] = [newScannedCode(), newScannedCode()];
    await handle([scanRecord(deleted, { at: at(0) - 1, targetVersion: 1 })]);
    for (const month of [0, 1]) await handle([...scansOf(deleted, at(month), 20), ...scansOf(retained, at(month), 30)]);
    await archive('file');
    await handle([...scansOf(deleted, at(2), 20), ...scansOf(retained, at(2), 30)]);
    await archive('table');
    await handle([...scansOf(deleted, Date.now() - 5_000, 20), ...scansOf(retained, Date.now() - 5_000, 30)]);
    await deleteAccountScans(database.pool, folder, deleted.accountId);
    expect(archivedLines().filter((line) => line.includes(deleted.accountId))).toEqual([]);
    expect(archivedLines()).toHaveLength(60);
    for (const table of [
      'scans',
      'scans_2022_03_part1',
      'scan_days',
      'scan_hours',
      'scan_values',
      'scan_targets',
      'scan_totals',
    ]) {
      const { rows } = await database.pool.query(`select from ${table} where account_id = $1`, [deleted.accountId]);
      expect({ table, rows: rows.length }).toEqual({ table, rows: 0 });
    }
    const { rows } = await database.pool.query('select from scan_visitors where code_id = $1', [deleted.codeId]);
    expect(rows).toEqual([]);
    expect(await total(retained)).toBe(120);
    expect((await expectCleanAudit()).ledger).toMatchObject({ recorded: 201, deleted: 81 });
  });

  test('also deletes scans answered before it that arrive later, and none answered since', async () => {
    const scanned = newScannedCode();
    const before = scansOf(scanned, Date.now() - 60_000, 10);
    await handle(before.slice(0, 5));
    await deleteAccountScans(database.pool, folder, scanned.accountId);
    await handle(before);
    expect(await total(scanned)).toBe(0);
    await handle(scansOf(scanned, Date.now() + 1_000, 3));
    expect(await total(scanned)).toBe(3);
    // A later call also deletes what arrived since.
    await deleteAccountScans(database.pool, folder, scanned.accountId);
    expect(await total(scanned)).toBe(0);
    await expectCleanAudit();
  });

  test('deletes the visitors of all days, also in a Postgres whose time zone is a day behind', async () => {
    const scanned = newScannedCode();
    // As of a gateway whose clock is ahead.
    const tomorrow = Math.floor(Date.now() / DAY_MS + 1) * DAY_MS;
    await handle([scanRecord(scanned, { at: tomorrow })]);
    const urlBehind = new URL(url);
    urlBehind.searchParams.set('options', '-c timezone=X24');
    const behind = await openDatabase(urlBehind.href, 2, entities);
    await deleteAccountScans(behind.pool, folder, scanned.accountId).finally(() => behind.close());
    const { rows } = await database.pool.query('select from scan_visitors where code_id = $1', [scanned.codeId]);
    expect(rows).toEqual([]);
    await handle([scanRecord(scanned, { at: tomorrow })]);
    expect(await figures(scanned, tomorrow)).toMatchObject({ scans: 1n, uniqueScans: 1n });
  });

  test('is finished by another process when the first one has died', async () => {
    const scanned = newScannedCode();
    await handle(scansOf(scanned, Date.now() - 60_000, 10));
    await requestDeletion(database.pool, scanned.accountId);
    await finishDeletions(database.pool, folder);
    expect(await hotRows(scanned)).toBe(0);
    expect(await total(scanned)).toBe(0);
  });

  test('times out with a retryable error when it cannot lock out recorders, and continues when retried', async () => {
    const scanned = newScannedCode();
    await handle(scansOf(scanned, Date.now() - 60_000, 10));
    const blocker = await database.pool.connect();
    await blocker.query('begin; lock table scans in row exclusive mode');
    const deleting: Promise<unknown> = deleteAccountScans(database.pool, folder, scanned.accountId).then(
      () => 'deleted',
      (error: unknown) => error,
    );
    const result = await Promise.race([deleting, sleep(20_000, 'still waiting')]);
    await blocker.query('rollback');
    // Closing the database waits for it.
    blocker.release();
    expect(result).toSatisfy(isUnavailable);
    await deleteAccountScans(database.pool, folder, scanned.accountId);
    expect(await total(scanned)).toBe(0);
  });

  test('keeps every counter correct while recorders record the same code', async () => {
    const scanned = newScannedCode();
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
    const { ledger } = await expectCleanAudit();
    expect(await total(scanned)).toBe(1_600 - ledger.deleted);
  });
});

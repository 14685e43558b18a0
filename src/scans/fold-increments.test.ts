import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { newUuid } from '../../common/contract/ids.ts';
import type { ConsumeOptions, Log } from '../../common/log/log.ts';
import { DAY_MS } from '../../common/runtime/durations.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { recordingLogger } from '../../test/harness/recording-logger.ts';
import { type Database, openDatabase } from '../db/database.ts';
import { entities } from '../entities.ts';
import { deleteAccountScans } from './delete-account-scans.ts';
import { foldIncrements } from './fold-increments.ts';
import { auditScans } from './ledger/audit-scans.ts';
import { startRecorder } from './recording/recorder.ts';
import { inMemoryLog, newScannedCode, pollHandler, type ScannedCode, scanRecord, TOPIC_ID } from './scans.fixture.ts';

const logger = pino({ level: 'silent' });
let database: Database;
let record: ReturnType<typeof pollHandler>;

beforeAll(async () => {
  database = await openDatabase((await freshDatabase()).url, 8, entities);
  record = pollHandler({ log: inMemoryLog(), database, logger });
});
afterAll(() => database.close());

const now = Date.now();

async function expectCleanAudit(): Promise<void> {
  const { differences, counted, rows } = await auditScans(database, { from: now - 60 * DAY_MS, to: now + DAY_MS });
  expect(differences).toEqual([]);
  expect(counted).toBe(rows);
}

/** Codes of one account. */
function newCodes(count: number): ScannedCode[] {
  const accountId = newUuid();
  return Array.from({ length: count }, () => ({ ...newScannedCode(), accountId }));
}

async function countOf(table: 'scan_rollups' | 'scan_increments', accountId: string): Promise<number> {
  const { rows } = await database.pool.query<{ rows: number }>(
    `select count(*)::integer as rows from ${table} where account_id = $1`,
    [accountId],
  );
  return rows[0]?.rows ?? 0;
}

test('recorders of one account neither wait for each other nor lose a scan while increments are folded', async () => {
  const codes = newCodes(12);
  const { accountId } = codes[0] as ScannedCode;
  // Another recorder with codes of the same account is in the middle of its transaction all the while.
  const open = await database.pool.connect();
  await open.query('begin');
  await open.query(
    `insert into scan_values (code_id, day, dimension, value, account_id, scans)
     values ($1, current_date, 'country', 'DE', $2, 1)`,
    [newUuid(), accountId],
  );
  await Promise.all(
    codes.flatMap((code, partition) => [
      ...[0, 1, 9].map((ago) =>
        record(
          Array.from({ length: 40 }, (_, index) => ({
            ...scanRecord(code, { at: now - ago * DAY_MS, referrerHost: `r${index % 7}.example` }),
            partition,
          })),
        ),
      ),
      foldIncrements(database.pool),
    ]),
  );
  await open.query('rollback');
  open.release();
  await expectCleanAudit();
  await foldIncrements(database.pool);
  expect(await countOf('scan_increments', accountId)).toBe(0);
  await expectCleanAudit();
});

test('a row of a thousand values is not rewritten for each added value, and the sums stay correct', async () => {
  // Each code's day has at most 200 referrers, an account's day has those of all its codes.
  const codes = newCodes(20);
  const { accountId } = codes[0] as ScannedCode;
  const largest = async () => {
    const { rows } = await database.pool.query<{ id: string; names: number }>(
      `select id, cardinality(names) as names from scan_rollups
       where subject_id = $1 and days = 1 order by 2 desc`,
      [accountId],
    );
    return rows;
  };
  for (const code of codes) {
    await record(
      Array.from({ length: 150 }, () => scanRecord(code, { at: now, referrerHost: `${newUuid()}.example` })),
    );
    await foldIncrements(database.pool);
  }
  const before = await largest();
  expect(before[0]?.names).toBeGreaterThan(1_000);
  expect(before.length).toBeLessThan(4);
  await record([scanRecord(codes[0] as ScannedCode, { at: now, referrerHost: 'another.example' })]);
  await foldIncrements(database.pool);
  expect((await largest())[0]).toEqual(before[0]);
  await expectCleanAudit();
  // Their values are removed from every row.
  await deleteAccountScans(database.pool, '', accountId);
  expect(await largest()).toEqual([]);
  await expectCleanAudit();
});

test('increments are folded some thousands and a limited number of names at a time, until none are left', async () => {
  const [{ accountId, codeId }] = newCodes(1) as [ScannedCode];
  await database.pool.query(
    `create table fold_batches (id serial, size integer);
     create function count_batch() returns trigger language plpgsql as $$
       begin insert into fold_batches (size) select count(*) from taken; return null; end $$;
     create trigger count_batch after delete on scan_increments referencing old table as taken
       for each statement execute function count_batch()`,
  );
  await database.pool.query(
    `insert into scan_increments (account_id, code_id, day, names, counts)
     select $1, $2, current_date, array_fill('rname'::text, array[names]), array_fill(0, array[names])
     from generate_series(1, 10004) increment, lateral (select case when increment > 10001 then 50000 else 0 end as names)`,
    [accountId, codeId],
  );
  await foldIncrements(database.pool);
  const { rows } = await database.pool.query<{ size: number }>('select size from fold_batches order by id');
  expect(rows.map(({ size }) => size)).toEqual([10_000, 3, 1]);
  await database.pool.query('drop trigger count_batch on scan_increments');
});

test('while another transaction is open, increments that were folded since it began are not read again and again', async () => {
  const { url } = await freshDatabase();
  const { pool, close } = await openDatabase(url, 1, entities);
  const snapshot = new pg.Client({ connectionString: url });
  await snapshot.connect();
  onTestFinished(async () => {
    await snapshot.end();
    await close();
  });
  await snapshot.query('begin isolation level repeatable read; select from scan_increments');
  const [{ accountId, codeId }] = newCodes(1) as [ScannedCode];
  const read: number[] = [];
  let last: string | undefined;
  for (let round = 0; round < 8; round++) {
    await pool.query(
      `insert into scan_increments (account_id, code_id, day, scans)
       select $1, $2, current_date, 1 from generate_series(1, 1000)`,
      [accountId, codeId],
    );
    last = await foldIncrements(pool, last);
    await pool.query('select pg_stat_force_next_flush()');
    const { rows } = await pool.query<{ read: number }>(
      `select idx_tup_read::integer as read from pg_stat_all_indexes where indexrelname = 'scan_increments_pkey'`,
    );
    read.push((rows[0]?.read ?? 0) - read.reduce((sum, each) => sum + each, 0));
  }
  expect(last).toBe('8000');
  // Each one to list and one to delete.
  expect(read).toEqual(Array(8).fill(2_000));
  expect(await foldIncrements(pool, last)).toBeUndefined();
});

test('values are not folded into ever larger rows, and deleting them leaves none in any row', async () => {
  const [{ accountId, codeId }] = newCodes(1) as [ScannedCode];
  const foldReferrers = async (count: number) => {
    for (const part of [1, 2, 3]) {
      await database.pool.query(
        `insert into scan_increments (account_id, code_id, day, names, counts)
         select $1, $2, current_date, array_agg('r' || sha512($3 || number::text::bytea)), array_agg($4::integer)
         from generate_series(1, 12000) number`,
        [accountId, codeId, `${part}`, count],
      );
      await foldIncrements(database.pool);
    }
  };
  const rowsOfAccount = async () => {
    const { rows } = await database.pool.query<{ days: number; names: number; rows: number }>(
      `select days, sum(cardinality(names))::integer as names, count(*)::integer as rows from scan_rollups
       where subject_id = $1 group by 1 order by 1`,
      [accountId],
    );
    return rows;
  };
  await foldReferrers(1);
  expect(await rowsOfAccount()).toEqual([1, 7].map((days) => ({ days, names: 36_000, rows: 2 })));
  await foldReferrers(-1);
  expect(await rowsOfAccount()).not.toEqual([]);
  await deleteAccountScans(database.pool, '', accountId);
  expect(await rowsOfAccount()).toEqual([]);
});

test('deleting the scans of an account removes their values from every counter and leaves those of others unchanged', async () => {
  const [deleted, kept] = [newCodes(3), newCodes(1)];
  const { accountId } = deleted[0] as ScannedCode;
  const poll = (codes: readonly ScannedCode[]) =>
    codes.flatMap((code) => [0, 8].map((ago) => scanRecord(code, { at: now - ago * DAY_MS, country: 'FR' })));
  await record(poll([...deleted, ...kept]));
  await foldIncrements(database.pool);
  // Inserted as increments, and not folded yet.
  await record(poll(deleted));
  await deleteAccountScans(database.pool, '', accountId);
  expect(await countOf('scan_rollups', accountId)).toBe(0);
  expect(await countOf('scan_increments', accountId)).toBe(0);
  expect(await countOf('scan_rollups', kept[0]?.accountId ?? '')).toBeGreaterThan(0);
  await expectCleanAudit();
});

test('a recorder folds increments when it starts and after polls, late ones too, and again after a failure', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const [code] = newCodes(1) as [ScannedCode];
  await record([scanRecord(code, { at: now })]);
  expect(await countOf('scan_increments', code.accountId)).toBeGreaterThan(0);
  const consumed: ConsumeOptions[] = [];
  const log: Log = {
    ...inMemoryLog(),
    consume(options) {
      consumed.push(options);
      return { stop: async () => undefined };
    },
  };
  const { lines, logger } = recordingLogger();
  const recorder = startRecorder({ log, database, logger });
  const expectFolded = () =>
    expect
      .poll(() => {
        vi.advanceTimersByTime(10_000);
        return countOf('scan_increments', code.accountId);
      })
      .toBe(0);
  await expectFolded();
  await database.pool.query(
    `create function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$;
     create trigger refuse before delete on scan_increments for each statement execute function refuse()`,
  );
  const next = scanRecord(code, { at: now });
  await consumed[0]?.handle([next], next.offset, TOPIC_ID);
  await expect
    .poll(() => {
      vi.advanceTimersByTime(10_000);
      return lines.map((line) => JSON.parse(line));
    })
    .toMatchObject([{ err: { message: 'refused' } }]);
  await database.pool.query('drop trigger refuse on scan_increments; drop function refuse');
  await expectFolded();
  // Of a transaction that was committed after later ones.
  await database.pool.query(
    `insert into scan_increments (id, account_id, code_id, day, scans) overriding system value values (1, $1, $2, $3, 0)`,
    [code.accountId, code.codeId, new Date(now)],
  );
  const late = scanRecord(code, { at: now });
  await consumed[0]?.handle([late], late.offset, TOPIC_ID);
  await expectFolded();
  await recorder.stop();
  await expectCleanAudit();
});

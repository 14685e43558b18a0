import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fromBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { pino } from 'pino';
import { parse } from 'uuid';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newUuid } from '../../../common/contract/ids.ts';
import { visitorOf } from '../../../common/contract/visitor.ts';
import type { ConsumeOptions } from '../../../common/log/log.ts';
import { SCANS_DEAD_LETTERS } from '../../../common/log/topics.ts';
import { ScanSchema } from '../../../proto/gen/signpost/scans/v1/scan_pb.ts';
import { freshDatabase } from '../../../test/harness/database.ts';
import { type Database, openDatabase } from '../../db/database.ts';
import { entities } from '../../entities.ts';
import { DAY_MS, dayOf } from '../days.ts';
import { auditScans } from '../ledger/audit.ts';
import { monthAfter, monthOf } from '../partitions.ts';
import { scanCounts } from '../reports/totals.ts';
import {
  formerRecord,
  IPHONE,
  keepingLog,
  logRecord,
  newScanned,
  type Scanned,
  scanRecord,
  visitor,
} from '../scans.fixture.ts';
import { recordingOf, startRecorder } from './recorder.ts';
import { makeSalts, readSalt } from './visitors.ts';

const logger = pino({ level: 'silent' });
let url: string;
let database: Database;
const log = keepingLog();
let handle: Awaited<ReturnType<typeof recordingOf>>;

beforeAll(async () => {
  ({ url } = await freshDatabase());
  database = await openDatabase(url, 8, entities);
  handle = await recordingOf({ log, database, logger });
});
afterAll(() => database.close());

async function total({ accountId, codeId }: Scanned): Promise<number> {
  return (await scanCounts(database.pool, accountId, [codeId])).get(codeId) ?? 0;
}

async function expectAgreement(): Promise<void> {
  const audit = await auditScans(database, { from: Date.UTC(2020, 0, 1), to: Date.now() + DAY_MS });
  expect(audit.differences).toEqual([]);
  expect(audit.counted).toBe(audit.rows);
}

async function rowsOf({ codeId }: Scanned) {
  const { rows } = await database.pool.query('select * from scans where code_id = $1 order by scanned_at', [codeId]);
  return rows;
}

test('a poll that is delivered again, in part or twice in one poll, counts once', async () => {
  const scanned = newScanned();
  const records = Array.from({ length: 100 }, () => scanRecord(scanned));
  await handle(records);
  await handle(records);
  await handle([...records.slice(40), ...records.slice(40), scanRecord(scanned)]);
  expect(await total(scanned)).toBe(101);
  await expectAgreement();
});

test('two recorders with overlapping polls count every scan once', async () => {
  const codes = Array.from({ length: 20 }, newScanned);
  const records = codes.flatMap((code) => Array.from({ length: 50 }, () => scanRecord(code)));
  const other = await recordingOf({ log, database, logger });
  const backwards = records.toReversed().map((record) => ({ ...record, partition: 1 }));
  await Promise.all(
    Array.from({ length: 8 }, (_, round) => (round % 2 ? other(backwards.slice(round * 60)) : handle(records))),
  );
  expect(await Promise.all(codes.map(total))).toEqual(codes.map(() => 50));
  await expectAgreement();
});

test('two recorders never wait for each other in a circle, whatever the order of their polls', async () => {
  const scanned = newScanned();
  const at = Date.now();
  const ids = Array.from({ length: 101 }, newUuid);
  const records = ids.map((id) => scanRecord(scanned, { id: parse(id), at }));
  const held = await database.pool.connect();
  try {
    // Both stop in the middle of their polls, with what came before it written but not committed.
    await held.query('begin');
    await held.query(`insert into scans values ($1, $2, $3, $4, 'person', 1, '', '', '', '', '', 0)`, [
      ids[50],
      new Date(at),
      scanned.accountId,
      scanned.codeId,
    ]);
    const elsewhere = records.toReversed().map((record) => ({ ...record, partition: 1 }));
    const both = Promise.all([handle(records), handle(elsewhere)]);
    await expect
      .poll(async () => {
        const { rows } = await database.pool.query(
          `select count(*)::integer as waiting from pg_stat_activity
           where datname = current_database() and wait_event_type = 'Lock'`,
        );
        return rows[0].waiting;
      })
      .toBe(2);
    await held.query('rollback');
    await both;
  } finally {
    held.release();
  }
  expect(await total(scanned)).toBe(101);
});

test('late and early scans land in their own day, whatever their month', async () => {
  const scanned = newScanned();
  const now = Date.now();
  const times = [
    Date.UTC(2021, 1, 28, 23, 59, 59, 999),
    Date.UTC(2021, 2, 1),
    Date.UTC(2024, 1, 29, 12),
    now,
    now + DAY_MS / 2,
  ];
  await handle(times.map((at) => scanRecord(scanned, { at })));
  const { rows } = await database.pool.query(
    `select to_char(day, 'YYYY-MM-DD') as day, scans::integer from scan_days where code_id = $1`,
    [scanned.codeId],
  );
  const expected: Record<string, number> = {};
  for (const at of times) expected[dayOf(at)] = (expected[dayOf(at)] ?? 0) + 1;
  expect(Object.fromEntries(rows.map(({ day, scans }) => [day, scans]))).toEqual(expected);
  await expectAgreement();
});

test('a code that is scanned 10,000 times a second is no hot row: a poll moves each of its counters once', async () => {
  const scanned = newScanned();
  const at = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  const second = () => Array.from({ length: 10_000 }, (_, index) => scanRecord(scanned, { at: at + (index % 1_000) }));
  await handle(second());
  const versions = async () => {
    const { rows } = await database.pool.query(
      `select xmin::text from scan_totals where code_id = $1
       union all select xmin::text from scan_days where code_id = $1
       union all select xmin::text from scan_hours where code_id = $1
       union all select xmin::text from scan_values where code_id = $1`,
      [scanned.codeId],
    );
    return rows.map(({ xmin }) => xmin);
  };
  await handle(second());
  // One version of each of the eight rows, all written by the same transaction.
  const written = await versions();
  expect(written).toHaveLength(8);
  expect(new Set(written).size).toBe(1);
  expect(await total(scanned)).toBe(20_000);
  await expectAgreement();
});

async function uniqueScans({ codeId }: Scanned): Promise<number> {
  const { rows } = await database.pool.query(
    'select sum(unique_scans)::integer as unique from scan_days where code_id = $1',
    [codeId],
  );
  return rows[0].unique;
}

test('visitors count once a day and code', async () => {
  const scanned = newScanned();
  await handle([1, 1, 2, 3].map((number) => scanRecord(scanned, { visitor: visitor(number) })));
  await handle([scanRecord(scanned, { visitor: visitor(1) })]);
  expect(await uniqueScans(scanned)).toBe(3);
  await expectAgreement();
});

test('a scan that comes after the visitors of its day were forgotten counts as a visitor of its own', async () => {
  const scanned = newScanned();
  const at = Date.now() - 2 * DAY_MS;
  await handle([scanRecord(scanned, { at }), scanRecord(scanned, { at })]);
  await handle([scanRecord(scanned, { at })]);
  expect(await uniqueScans(scanned)).toBe(3);
  expect(new Set((await rowsOf(scanned)).map((row) => row.visitor)).size).toBe(3);
});

test('a country and a referrer that no gateway would write are unknown, and the scan counts', async () => {
  const scanned = newScanned();
  await handle([scanRecord(scanned, { userAgent: '\0{"', country: '??', referrerHost: 'a/b?c' })]);
  expect(await rowsOf(scanned)).toMatchObject([
    { country: 'unknown', device: 'other', operating_system: 'unknown', browser: 'unknown', referrer: 'unknown' },
  ]);
});

describe('records of former gateways', () => {
  test('have visitors by address and user agent, who are the same as those that gateways tell now', async () => {
    const scanned = newScanned();
    await makeSalts(database.pool, Date.now());
    const salt = await readSalt(database.pool, dayOf(Date.now()));
    const same = Buffer.from(visitorOf(salt ?? '', '81.2.69.142', IPHONE), 'hex');
    await handle([
      formerRecord(scanned),
      scanRecord(scanned, { visitor: same }),
      formerRecord(scanned, { address: '81.2.69.143' }),
      formerRecord(scanned, { userAgent: 'another' }),
    ]);
    await handle([formerRecord(scanned)]);
    expect(await uniqueScans(scanned)).toBe(3);
    await expectAgreement();
  });

  test('have their country by hint or address and the host of their referrer; the address is not recorded', async () => {
    const scanned = newScanned();
    const now = Date.now();
    await handle([
      formerRecord(scanned, { at: now - 2, referrer: 'https://www.example.org/path?query' }),
      formerRecord(scanned, { at: now - 1, countryHint: 'de' }),
      formerRecord(scanned, { at: now, address: 'nowhere', referrer: 'http://[', countryHint: '??' }),
    ]);
    const rows = await rowsOf(scanned);
    expect(rows).toMatchObject([
      { country: 'GB', referrer: 'example.org' },
      { country: 'DE', referrer: 'direct' },
      { country: 'unknown', referrer: 'unknown' },
    ]);
    expect(JSON.stringify(rows)).not.toMatch(/81\.2\.69|query/);
  });

  test('whose day has no salt any more count as visitors of their own', async () => {
    const scanned = newScanned();
    await handle([1, 2].map((ms) => formerRecord(scanned, { at: Date.now() - 2 * DAY_MS + ms })));
    expect(await uniqueScans(scanned)).toBe(2);
  });
});

test('what can not be read goes to the dead letters with the reason, and the rest is recorded', async () => {
  const scanned = newScanned();
  log.published.length = 0;
  const bad = [
    logRecord('k', null),
    logRecord('k', Buffer.from('no protobuf')),
    scanRecord(scanned, { id: Buffer.alloc(3) }),
    formerRecord(scanned, { codeId: 'qr_nonsense', referrer: 'https://example.org/?q', language: 'de' }),
    scanRecord(scanned, { visitor: Buffer.alloc(7) }),
    scanRecord(scanned, { accountId: '' }),
    scanRecord(scanned, { at: Date.UTC(1999, 0, 1) }),
    scanRecord(scanned, { at: Date.now() + 2 * DAY_MS }),
  ];
  await handle([...bad, scanRecord(scanned)]);
  expect(await total(scanned)).toBe(1);
  expect(log.published.map(({ topic }) => topic)).toEqual([SCANS_DEAD_LETTERS.name]);
  const letters = log.published[0]?.records ?? [];
  const scans = letters.slice(2).map(({ value }) => fromBinary(ScanSchema, value ?? new Uint8Array()));
  expect(letters.slice(0, 2).map(({ value }) => value)).toEqual([null, null]);
  expect(scans).toEqual(
    bad.slice(2).map(({ value }) => {
      const scan = fromBinary(ScanSchema, value ?? new Uint8Array());
      return { ...scan, address: '', referrer: '', language: '' };
    }),
  );
  expect(new Set(letters.map(({ headers }) => headers?.reason)).size).toBe(7);
});

test('a poll is refused, not dropped, while Postgres is away', async () => {
  const away = await openDatabase('postgres://nobody@127.0.0.1:1/none', 1, entities);
  const cut = await recordingOf({ log, database: away, logger });
  await expect(cut([scanRecord(newScanned())])).rejects.toThrow();
  await away.close();
});

test('one code and day takes no more than a bounded number of referrers; the rest is other', async () => {
  const scanned = newScanned();
  const poll = (from: number) =>
    handle(
      Array.from({ length: 300 }, (_, index) => scanRecord(scanned, { referrerHost: `r${from + index}.example` })),
    );
  await poll(0);
  await poll(250);
  await poll(5_000);
  const { rows } = await database.pool.query(
    `select count(*)::integer as different, sum(scans)::integer as scans,
            sum(scans) filter (where value = 'r0.example')::integer as first
     from scan_values where code_id = $1 and dimension = 'referrer'`,
    [scanned.codeId],
  );
  expect(rows).toMatchObject([{ scans: 900 }]);
  expect(rows[0].different).toBeLessThanOrEqual(201);
  await expectAgreement();
});

test('whatever is scanned, counters tell what the rows tell', async () => {
  const codes = Array.from({ length: 3 }, newScanned);
  const told = fc.record({
    code: fc.nat(2),
    at: fc.integer({ min: Date.now() - 5 * DAY_MS, max: Date.now() }),
    userAgent: fc.oneof(fc.constantFrom('', 'curl/8.0', 'WhatsApp/2.23'), fc.string()),
    visitor: fc.constantFrom(new Uint8Array(), ...[1, 2, 3].map(visitor)),
    address: fc.oneof(fc.ipV4(), fc.ipV6(), fc.string()),
    referrer: fc.oneof(fc.webUrl(), fc.string()),
    countryHint: fc.string({ maxLength: 2 }),
    country: fc.oneof(fc.constantFrom('DE', 'FR'), fc.string({ maxLength: 2 })),
    referrerHost: fc.oneof(fc.domain(), fc.string()),
    purpose: fc.constantFrom('', 'prefetch', 'prefetch;prerender'),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(told, { minLength: 1, maxLength: 40 }), async (scans) => {
      const records = scans.map(({ code, ...scan }) => scanRecord(codes[code] as Scanned, scan));
      await handle(records);
      await Promise.all([handle(records), handle(records.slice(1))]);
      await expectAgreement();
    }),
    { numRuns: 25 },
  );
});

test('a recorder killed in the middle of its work drops none and doubles none', async () => {
  const scanned = newScanned();
  const polls = Array.from({ length: 10 }, () => Array.from({ length: 300 }, () => scanRecord(scanned)));
  const values = polls.map((poll) => poll.map(({ value }) => Buffer.from(value ?? []).toString('base64')));
  const killed = new Set<number>();
  for (let next = 0; next < polls.length; ) {
    const child = fork(new URL('./recorder-process.fixture.ts', import.meta.url), [url], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    child.send(values.slice(next));
    // Each child is killed at another moment of its second poll; what it was doing comes again, as from the log.
    const [done] = (await once(child, 'message')) as [number];
    await new Promise((resolve) => setTimeout(resolve, next * 2));
    child.kill('SIGKILL');
    await once(child, 'exit');
    killed.add(next);
    next += done;
  }
  expect(killed.size).toBe(10);
  expect(await total(scanned)).toBe(3_000);
  await expectAgreement();
});

test('a recorder makes this month and the next ahead, joins its group, and stops', async () => {
  const consumed: ConsumeOptions[] = [];
  const stopped: string[] = [];
  const recorder = await startRecorder({
    log: {
      ...log,
      consume(options) {
        consumed.push(options);
        return { stop: async () => void stopped.push(options.topic) };
      },
    },
    database,
    logger,
  });
  await recorder.stop();
  expect(consumed).toMatchObject([{ topic: 'signpost.scans.v1', group: 'signpost.recorder' }]);
  expect(stopped).toEqual(['signpost.scans.v1']);
  const next = monthAfter(monthOf(Date.now())).replace('-', '_');
  const { rows } = await database.pool.query(
    `select count(*)::integer as indexes from pg_indexes where tablename = 'scans_' || $1`,
    [next],
  );
  // The primary key and two more: attached, not made twice.
  expect(rows).toEqual([{ indexes: 3 }]);
});

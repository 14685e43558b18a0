import { fromBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { pino } from 'pino';
import { parse } from 'uuid';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import { newUuid } from '../../../common/contract/ids.ts';
import { openKafkaLog } from '../../../common/log/kafka.ts';
import { type ConsumeOptions, type LogRecord, ReadAgain } from '../../../common/log/log.ts';
import { prefixed } from '../../../common/log/prefixed.ts';
import { SCANS_DEAD_LETTERS } from '../../../common/log/topics.ts';
import { DAY_MS } from '../../../common/runtime/durations.ts';
import { ScanSchema } from '../../../proto/gen/signpost/scans/v1/scan_pb.ts';
import { freshDatabase } from '../../../test/harness/database.ts';
import { recordingLogger } from '../../../test/harness/recording-logger.ts';
import { type Database, openDatabase } from '../../db/database.ts';
import { entities } from '../../entities.ts';
import { dayOf } from '../days.ts';
import { auditScans } from '../ledger/audit-scans.ts';
import { monthAfter, monthOf, partitionOf } from '../partitions.ts';
import { scanCounts } from '../reports/scan-counts.ts';
import {
  inMemoryLog,
  logRecord,
  newScannedCode,
  pollHandler,
  type ScannedCode,
  scanRecord,
  visitor,
} from '../scans.fixture.ts';
import { startRecorder } from './recorder.ts';

const logger = pino({ level: 'silent' });
let url: string;
let database: Database;
const log = inMemoryLog();
let handle: ReturnType<typeof pollHandler>;

beforeAll(async () => {
  ({ url } = await freshDatabase());
  database = await openDatabase(url, 8, entities);
  handle = pollHandler({ log, database, logger });
});
afterAll(() => database.close());

async function total({ accountId, codeId }: ScannedCode): Promise<number> {
  return (await scanCounts(database.pool, accountId, [codeId])).get(codeId) ?? 0;
}

async function expectCleanAudit(): Promise<void> {
  const audit = await auditScans(database, { from: Date.UTC(2020, 0, 1), to: Date.now() + DAY_MS });
  expect(audit.differences).toEqual([]);
  expect(audit.counted).toBe(audit.rows);
}

async function rowsOf({ codeId }: ScannedCode) {
  const { rows } = await database.pool.query('select * from scans where code_id = $1 order by scanned_at', [codeId]);
  return rows;
}

test('a poll that is delivered again, partly or twice within one poll, counts once', async () => {
  const scanned = newScannedCode();
  const records = Array.from({ length: 100 }, () => scanRecord(scanned));
  await handle(records);
  await handle(records);
  await handle([...records.slice(40), ...records.slice(40), scanRecord(scanned)]);
  expect(await total(scanned)).toBe(101);
  await expectCleanAudit();
});

describe('records that Postgres lacks, after it was put back to an earlier state', () => {
  const partition = 7;
  /** Polls of one partition: a scan in each. */
  const polls = (scanned: ScannedCode, count: number) =>
    Array.from({ length: count }, (_, nth) => [{ ...scanRecord(scanned), partition, offset: BigInt(1_000 + nth) }]);
  const position = `select position::integer as position from scan_positions where partition = ${partition}`;

  test('are read again as far as the log has them; for those that it has deleted, that is logged', async () => {
    const scanned = newScannedCode();
    let oldest = 1_000n;
    const { lines, logger } = recordingLogger();
    const since = async () => new Map([[partition, oldest]]);
    const record = pollHandler({ log: { ...log, since }, database, logger });
    const [first = [], second = [], third = [], fourth = [], fifth = [], sixth = []] = polls(scanned, 6);
    await record(first, 1_000n);
    oldest = 0n;
    await record(second, 1_001n);
    await expect(record(fourth, 1_003n)).rejects.toEqual(new ReadAgain(1_002n));
    await record([...third, ...fourth], 1_002n);
    expect(await total(scanned)).toBe(4);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 40, msg: 'Postgres lacks scans; they are read from the log again', partition, records: 1 },
    ]);
    // Offsets without records, such as those of Kafka's markers of transactions.
    await record([{ ...(fifth[0] as LogRecord), offset: 1_010n }], 1_004n);
    oldest = 1_020n;
    await expect(record([{ ...(sixth[0] as LogRecord), offset: 1_030n }], 1_030n)).rejects.toEqual(
      new ReadAgain(1_020n),
    );
    expect(await total(scanned)).toBe(5);
    await record([{ ...(sixth[0] as LogRecord), offset: 1_030n }], 1_020n);
    expect(await total(scanned)).toBe(6);
    expect(lines.slice(2).map((line) => JSON.parse(line))).toMatchObject([
      { level: 50, msg: 'the log has deleted scans that were not recorded', partition, records: 9 },
    ]);
    expect((await database.pool.query(position)).rows).toEqual([{ position: 1_031 }]);
    await expectCleanAudit();
  });

  test('are read again, in a partition without a position, if they were published since the database was created', async () => {
    const partition = 8;
    const scanned = newScannedCode();
    const records = [Date.UTC(2020, 0, 1), Date.now(), Date.now()].map((timestamp, nth) => ({
      ...scanRecord(scanned),
      partition,
      offset: BigInt(nth),
      timestamp,
    }));
    const { lines, logger } = recordingLogger();
    const since = async (_: string, time: number) =>
      new Map([[partition, records.find(({ timestamp }) => timestamp >= time)?.offset ?? 3n]]);
    const record = pollHandler({ log: { ...log, since }, database, logger });
    await expect(record(records.slice(2), 2n)).rejects.toEqual(new ReadAgain(1n));
    await record(records.slice(1), 1n);
    expect(await total(scanned)).toBe(2);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 40, msg: 'Postgres lacks scans; they are read from the log again', partition, records: 1 },
    ]);
    await expectCleanAudit();
  });

  test('are read again from the beginning of a topic that Postgres does not know yet', async () => {
    const scanned = newScannedCode();
    const { lines, logger } = recordingLogger();
    let oldest = 0n;
    const since = async () => new Map([[partition, oldest]]);
    const record = pollHandler({ log: { ...log, since }, database, logger });
    const [first = [], second = [], third = []] = polls(scanned, 3);
    const renumbered = (poll: LogRecord[], offset: bigint) => poll.map((each) => ({ ...each, offset }));
    await record(first, 1_000n);
    // Recorded from the new topic, and lost with a restore to the time before.
    await expect(record(renumbered(third, 1_001n), 1_001n, 'new')).rejects.toEqual(new ReadAgain(0n));
    await record(renumbered(second, 0n), 0n, 'new');
    await record(renumbered(third, 1_001n), 1n, 'new');
    expect(await total(scanned)).toBe(3);
    expect((await database.pool.query(position)).rows).toEqual([{ position: 1_002 }]);
    // A third one, of which the log has deleted the first scans.
    oldest = 5n;
    await record(renumbered(polls(scanned, 1)[0] ?? [], 5n), 5n, 'third');
    expect(await total(scanned)).toBe(4);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 40, msg: 'Postgres lacks scans; they are read from the log again', partition, records: 1_001 },
      { level: 50, msg: 'the log has deleted scans that were not recorded', partition, records: 5 },
    ]);
    await expectCleanAudit();
  });
});

test('two recorders with overlapping polls count every scan once', async () => {
  const codes = Array.from({ length: 20 }, newScannedCode);
  const records = codes.flatMap((code) => Array.from({ length: 50 }, () => scanRecord(code)));
  const other = pollHandler({ log, database, logger });
  const backwards = records.toReversed().map((record) => ({ ...record, partition: 1 }));
  await Promise.all(
    Array.from({ length: 8 }, (_, round) => (round % 2 ? other(backwards.slice(round * 60)) : handle(records))),
  );
  expect(await Promise.all(codes.map(total))).toEqual(codes.map(() => 50));
  await expectCleanAudit();
});

test('two recorders never deadlock, whatever the order of their polls', async () => {
  const scanned = newScannedCode();
  const at = Date.now();
  const ids = Array.from({ length: 101 }, newUuid);
  const records = ids.map((id) => scanRecord(scanned, { id: parse(id), at }));
  const blocker = await database.pool.connect();
  try {
    // Both block in the middle of their polls, with the scans before it written but not committed.
    await blocker.query('begin');
    await blocker.query(`insert into scans values ($1, $2, $3, $4, 'person', 1, '', '', '', '', '', 0)`, [
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
    await blocker.query('rollback');
    await both;
  } finally {
    blocker.release();
  }
  expect(await total(scanned)).toBe(101);
});

test('late and early scans count on their own day, in any month', async () => {
  const scanned = newScannedCode();
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
  await expectCleanAudit();
});

test('a poll updates each counter once, so a code scanned 10,000 times a second is not a hot row', async () => {
  const scanned = newScannedCode();
  const at = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  const poll = () => Array.from({ length: 10_000 }, (_, index) => scanRecord(scanned, { at: at + (index % 1_000) }));
  await handle(poll());
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
  await handle(poll());
  // Eight rows, each written once by the same transaction.
  const written = await versions();
  expect(written).toHaveLength(8);
  expect(new Set(written).size).toBe(1);
  expect(await total(scanned)).toBe(20_000);
  await expectCleanAudit();
});

async function uniqueScans({ codeId }: ScannedCode): Promise<number> {
  const { rows } = await database.pool.query(
    'select sum(unique_scans)::integer as unique from scan_days where code_id = $1',
    [codeId],
  );
  return rows[0].unique;
}

test('a visitor counts once per day and code', async () => {
  const scanned = newScannedCode();
  await handle([1, 1, 2, 3].map((number) => scanRecord(scanned, { visitor: visitor(number) })));
  await handle([scanRecord(scanned, { visitor: visitor(1) })]);
  expect(await uniqueScans(scanned)).toBe(3);
  await expectCleanAudit();
});

test("a scan that arrives after its day's visitors were deleted counts as a visitor of its own", async () => {
  const scanned = newScannedCode();
  const at = Date.now() - 2 * DAY_MS;
  await handle([scanRecord(scanned, { at }), scanRecord(scanned, { at })]);
  await handle([scanRecord(scanned, { at })]);
  expect(await uniqueScans(scanned)).toBe(3);
  expect(new Set((await rowsOf(scanned)).map((row) => row.visitor)).size).toBe(3);
});

test('an invalid country or referrer is unknown, and the scan counts', async () => {
  const scanned = newScannedCode();
  await handle([scanRecord(scanned, { userAgent: '\0{"', country: '??', referrerHost: 'a/b?c' })]);
  expect(await rowsOf(scanned)).toMatchObject([
    { country: 'unknown', device: 'other', operating_system: 'unknown', browser: 'unknown', referrer: 'unknown' },
  ]);
});

test('scans without a visitor count as visitors of their own', async () => {
  const scanned = newScannedCode();
  await handle([1, 2].map(() => scanRecord(scanned, { visitor: new Uint8Array() })));
  expect(await uniqueScans(scanned)).toBe(2);
  await expectCleanAudit();
});

test('records that cannot be decoded become dead letters with a reason, and the rest is recorded', async () => {
  const scanned = newScannedCode();
  log.published.length = 0;
  const bad = [
    logRecord('k', null),
    logRecord('k', Buffer.from('no protobuf')),
    scanRecord(scanned, { id: Buffer.alloc(3) }),
    scanRecord(scanned, {
      codeId: 'qr_nonsense',
      address: '81.2.69.142',
      referrer: 'https://example.org/?q',
      language: 'de',
    }),
    scanRecord(scanned, { visitor: Buffer.alloc(7) }),
    scanRecord(scanned, { accountId: '' }),
    scanRecord(scanned, { at: Date.UTC(1999, 0, 1) }),
    scanRecord(scanned, { at: Date.now() + 2 * DAY_MS }),
    scanRecord(scanned, { targetVersion: 2 ** 31 }),
    scanRecord(scanned, { targetVersion: 1, targetRule: 2 ** 15 }),
    scanRecord(scanned, { targetVersion: 1, targetVariant: 'v'.repeat(33) }),
    scanRecord(scanned, { targetVersion: 1, targetVariant: 'line\nbreak' }),
  ];
  const largest = { targetVersion: 2 ** 31 - 1, targetRule: 2 ** 15 - 1, targetVariant: 'v'.repeat(32) };
  await handle([...bad, scanRecord(scanned), scanRecord(scanned, largest)]);
  expect(await total(scanned)).toBe(2);
  expect(log.published.map(({ topic }) => topic)).toEqual([SCANS_DEAD_LETTERS.name]);
  const deadLetters = log.published[0]?.records ?? [];
  const scans = deadLetters.slice(2).map(({ value }) => fromBinary(ScanSchema, value ?? new Uint8Array()));
  expect(deadLetters.slice(0, 2).map(({ value }) => value)).toEqual([null, null]);
  expect(scans).toEqual(
    bad.slice(2).map(({ value }) => {
      const scan = fromBinary(ScanSchema, value ?? new Uint8Array());
      return { ...scan, address: '', referrer: '', language: '' };
    }),
  );
  expect(new Set(deadLetters.map(({ headers }) => headers?.reason)).size).toBe(8);
});

const brokers = inject('kafkaBrokers');

test.skipIf(brokers === null)(
  'records too large for a dead letter become short ones and do not stop the rest',
  async () => {
    const kafka = prefixed(
      openKafkaLog({ brokers: (brokers ?? '').split(','), clientId: 'signpost-test', logger }),
      `t${newUuid()}.`,
    );
    onTestFinished(() => kafka.close());
    await kafka.ensureTopics([SCANS_DEAD_LETTERS]);
    const scanned = newScannedCode();
    const megabyte = 'm'.repeat(1_048_576);
    const records = [
      { ...logRecord('k', null), headers: { kept: 'yes' } },
      { ...logRecord('k'.repeat(200_000), null), headers: { megabyte } },
      scanRecord(scanned, { codeId: 'qr_nonsense', userAgent: megabyte }),
      scanRecord(scanned),
    ];
    await pollHandler({ log: kafka, database, logger })(records);
    expect(await total(scanned)).toBe(1);
    const deadLetters: LogRecord[] = [];
    kafka.follow({
      topic: SCANS_DEAD_LETTERS.name,
      from: new Map(),
      handle: (read) => void deadLetters.push(...read),
    });
    await expect.poll(() => deadLetters.length).toBe(3);
    const reason = expect.stringMatching(/^The .*\. Its value and headers are left out/);
    expect(deadLetters).toMatchObject([
      { key: 'k', value: null, headers: { kept: 'yes', reason: 'The record has no value.' } },
      { key: 'k'.repeat(1_000), value: null, headers: { reason } },
      { key: 'qr_nonsense', value: null, headers: { reason } },
    ]);
  },
);

test.each([-2, 2])(
  'scans count as usual, and visitors once, on a core whose clock is wrong by %i days',
  async (days) => {
    const scanned = newScannedCode();
    log.published.length = 0;
    const now = Date.now();
    const records = [1, 2].map(() => scanRecord(scanned, { at: now }));
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now + days * DAY_MS);
    await handle(records).finally(() => clock.mockRestore());
    expect(log.published).toEqual([]);
    const { rows } = await database.pool.query(
      'select scans::integer, unique_scans::integer as visitors from scan_days where code_id = $1',
      [scanned.codeId],
    );
    expect(rows).toEqual([{ scans: 2, visitors: 1 }]);
    await expectCleanAudit();
  },
);

test('failures that repeat every second for each partition are logged once a minute', async () => {
  const { lines, logger } = recordingLogger();
  const consumed: ConsumeOptions[] = [];
  const consume = (options: ConsumeOptions) => {
    consumed.push(options);
    return { stop: async () => undefined };
  };
  const recorder = startRecorder({ log: { ...log, consume }, database, logger });
  for (let failure = 0; failure < 100; failure++) consumed[0]?.onError?.(new Error('away'));
  await recorder.stop();
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ level: 40, err: { message: 'away' } }]);
});

test('a poll is rejected, not dropped, while Postgres is unavailable', async () => {
  const unavailable = await openDatabase('postgres://nobody@127.0.0.1:1/none', 1, entities);
  const failing = pollHandler({ log, database: unavailable, logger });
  await expect(failing([scanRecord(newScannedCode())])).rejects.toThrow();
  await unavailable.close();
});

test('dead letters are published once, however often their poll is delivered before it is recorded', async () => {
  const scanned = newScannedCode();
  log.published.length = 0;
  const records = [logRecord('k', null), scanRecord(scanned)];
  let isUnavailable = true;
  const failing = new Proxy(database.pool, {
    get(pool, name) {
      if (isUnavailable && name === 'connect') return () => Promise.reject(new Error('away'));
      const value = Reflect.get(pool, name, pool);
      return typeof value === 'function' ? value.bind(pool) : value;
    },
  });
  const retried = pollHandler({ log, database: { ...database, pool: failing }, logger });
  for (let attempt = 0; attempt < 3; attempt++) await expect(retried(records)).rejects.toThrow('away');
  isUnavailable = false;
  await retried(records);
  expect(log.published).toHaveLength(1);
  expect(await total(scanned)).toBe(1);
  await expectCleanAudit();
});

test("a code's day has a bounded number of referrers; the rest counts as other", async () => {
  const scanned = newScannedCode();
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
  await expectCleanAudit();
});

test('scans without a referring host are counted as such, however many hosts are invented', async () => {
  const scanned = newScannedCode();
  const poll = (name: string) => {
    const invented = Array.from({ length: 201 }, (_, index) => `${name}${index}.example`);
    const hosts = [...invented, ...Array(5_000).fill(''), 'no host'];
    return handle(hosts.map((referrerHost) => scanRecord(scanned, { referrerHost })));
  };
  const counts = async () => {
    const { rows } = await database.pool.query(
      `select value, scans::integer as scans from scan_values
       where code_id = $1 and dimension = 'referrer' and value not like '%.example' order by scans desc`,
      [scanned.codeId],
    );
    return rows.map(({ value, scans }) => [value, scans]);
  };
  await poll('a');
  expect(await counts()).toEqual(
    expect.arrayContaining([
      ['direct', 5_000],
      ['unknown', 1],
      ['other', 1],
    ]),
  );
  await poll('b');
  expect(await counts()).toEqual([
    ['direct', 10_000],
    ['other', 202],
    ['unknown', 2],
  ]);
  await expectCleanAudit();
});

test('counters agree with the rows for any scans', async () => {
  const codes = Array.from({ length: 3 }, newScannedCode);
  const fields = fc.record({
    code: fc.nat(2),
    at: fc.integer({ min: Date.now() - 5 * DAY_MS, max: Date.now() }),
    userAgent: fc.oneof(fc.constantFrom('', 'curl/8.0', 'WhatsApp/2.23'), fc.string()),
    visitor: fc.constantFrom(new Uint8Array(), ...[1, 2, 3].map(visitor)),
    country: fc.oneof(fc.constantFrom('DE', 'FR'), fc.string({ maxLength: 2 })),
    referrerHost: fc.oneof(fc.domain(), fc.string()),
    purpose: fc.constantFrom('', 'prefetch', 'prefetch;prerender'),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(fields, { minLength: 1, maxLength: 40 }), async (scans) => {
      const records = scans.map(({ code, ...scan }) => scanRecord(codes[code] as ScannedCode, scan));
      await handle(records);
      await Promise.all([handle(records), handle(records.slice(1))]);
      await expectCleanAudit();
    }),
    { numRuns: 25 },
  );
});

test('an upkeep that can’t create a partition still destroys past salts', async () => {
  const fresh = await openDatabase((await freshDatabase()).url, 4, entities);
  onTestFinished(() => fresh.close());
  const { lines, logger } = recordingLogger();
  const partition = partitionOf(monthAfter(monthOf(Date.now())));
  await fresh.pool.query(`drop table if exists ${partition}; create table ${partition} ()`);
  await fresh.pool.query(`insert into visitor_salts (day, salt) values (current_date - 2, '')`);
  await startRecorder({ log, database: fresh, logger }).stop();
  const { rows } = await fresh.pool.query('select day - current_date as from_now from visitor_salts order by day');
  expect(rows).toEqual([{ from_now: 0 }, { from_now: 1 }]);
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: 40, msg: 'upkeep of the scans failed; it is tried again later', err: { code: '42P07' } },
  ]);
});

test('a recorder creates partitions and salts, destroys past salts, joins its group, and stops', async () => {
  await database.pool.query(`insert into visitor_salts (day, salt) values ('2026-01-01', ''), (current_date - 2, '')`);
  const consumed: ConsumeOptions[] = [];
  const stopped: string[] = [];
  const recorder = startRecorder({
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
  // The primary key and two more: attached, not created twice.
  expect(rows).toEqual([{ indexes: 3 }]);
  const salts = await database.pool.query('select day - current_date as from_now from visitor_salts order by day');
  expect(salts.rows).toEqual([{ from_now: 0 }, { from_now: 1 }]);
});

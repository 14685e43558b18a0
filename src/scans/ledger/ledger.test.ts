import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { GATEWAY_FIGURES, type GatewayFigures, writeGatewayFigures } from '../../../common/contract/gateway-figures.ts';
import type { LogRecord } from '../../../common/log/log.ts';
import { transaction } from '../../../common/postgres/sql.ts';
import { DAY_MS } from '../../../common/runtime/durations.ts';
import { freshDatabase } from '../../../test/harness/database.ts';
import { type Database, openDatabase } from '../../db/database.ts';
import { entities } from '../../entities.ts';
import { dayOf } from '../days.ts';
import { inMemoryLog, logRecord, newScannedCode, pollHandler, scanRecord, TOPIC_ID } from '../scans.fixture.ts';
import { auditScans } from './audit-scans.ts';
import { waitingRecords } from './ledger.ts';

let database: Database;
let handle: ReturnType<typeof pollHandler>;

beforeAll(async () => {
  const { url } = await freshDatabase();
  database = await openDatabase(url, 4, entities);
  handle = pollHandler({ log: inMemoryLog(), database, logger: pino({ level: 'silent' }) });
});
afterAll(() => database.close());

const scanned = newScannedCode();

/** Past days on which no other test here scans. */
let days = 100;
const anotherDay = () => Date.now() - ++days * DAY_MS;

async function ledgerOf(at: number) {
  const { ledger, differences } = await auditScans(database, { from: at, to: at });
  expect(differences).toEqual([]);
  return ledger;
}

function withFigures(record: LogRecord, figures: readonly GatewayFigures[]): LogRecord {
  return { ...record, headers: { [GATEWAY_FIGURES]: writeGatewayFigures(figures) } };
}

/** The same records, published again with new offsets. */
function republished(records: readonly LogRecord[], partition = 0): LogRecord[] {
  return records.map(({ key, value }) => ({ ...logRecord(key, value), partition }));
}

test('records are entered as recorded or as duplicates on the day of their scans, in any order of arrival', async () => {
  const [one, two] = [anotherDay(), anotherDay()];
  const first = Array.from({ length: 10 }, () => scanRecord(scanned, { at: one }));
  const second = Array.from({ length: 5 }, () => scanRecord(scanned, { at: two }));
  await handle([...first, ...second, ...republished(second.slice(0, 2))]);
  await handle(republished(first));
  expect(await ledgerOf(one)).toMatchObject({ recorded: 10, duplicates: 10 });
  expect(await ledgerOf(two)).toMatchObject({ recorded: 5, duplicates: 2 });
});

test('a record that the log delivers again is entered once, whatever it contains', async () => {
  const at = anotherDay();
  const records = Array.from({ length: 6 }, () => scanRecord(scanned, { at }));
  const poll = [...records, ...republished(records.slice(0, 2)), logRecord('k', null)];
  const { dead_lettered } = await ledgerOf(Date.now());
  await handle(poll);
  await handle(poll);
  await handle(poll.slice(0, 3));
  await handle([...poll.slice(2), ...republished(records.slice(5))]);
  expect(await ledgerOf(at)).toMatchObject({ recorded: 6, duplicates: 3 });
  expect((await ledgerOf(Date.now())).dead_lettered).toBe(dead_lettered + 1);
});

test('a topic whose offsets start again is entered like any other', async () => {
  const at = anotherDay();
  const from = (offset: bigint) => ({ ...scanRecord(scanned, { at }), partition: 6, offset });
  await handle([from(1_000n), from(1_001n)]);
  await handle([from(0n), from(1n)]);
  const next = from(2n);
  await handle([next, { ...next, offset: 3n }]);
  expect(await ledgerOf(at)).toMatchObject({ recorded: 5, duplicates: 1 });
});

test('concurrent recorders enter every record, and each scan as recorded only once', async () => {
  const at = anotherDay();
  const records = Array.from({ length: 200 }, () => scanRecord(scanned, { at }));
  await Promise.all([
    handle(records),
    handle(republished(records.slice(100), 1)),
    handle(republished(records.toReversed(), 2)),
  ]);
  expect(await ledgerOf(at)).toMatchObject({ recorded: 200, duplicates: 300 });
});

test('concurrent recorders with the same records enter them once', async () => {
  const at = anotherDay();
  const records = Array.from({ length: 200 }, () => scanRecord(scanned, { at }));
  await Promise.all([handle(records), handle(records), handle(records)]);
  expect(await ledgerOf(at)).toMatchObject({ recorded: 200, duplicates: 0 });
});

test('dead letters are entered on the day on which they arrived', async () => {
  const before = await ledgerOf(Date.now());
  await handle([logRecord('k', null), logRecord('k', Buffer.from('no protobuf'))]);
  expect((await ledgerOf(Date.now())).dead_lettered).toBe(before.dead_lettered + 2);
});

test('figures of gateways are summed over their runs, with the greatest value that each run reported', async () => {
  const at = anotherDay();
  const day = dayOf(at);
  const [one, two] = ['00000000000000aa', '00000000000000bb'];
  await handle([
    withFigures(scanRecord(scanned, { at }), [{ gateway: one, day, answered: 20, lost: 1, published: 11 }]),
    withFigures(scanRecord(scanned, { at }), [{ gateway: one, day, answered: 18, lost: 0, published: 15 }]),
    withFigures(scanRecord(scanned, { at }), [{ gateway: two, day, answered: 4, lost: 0, published: 9 }]),
  ]);
  // A newer figure together with outdated ones.
  await handle([
    withFigures(scanRecord(scanned, { at }), [{ gateway: one, day, answered: 22, lost: 0, published: 3 }]),
  ]);
  expect(await ledgerOf(at)).toMatchObject({ answered: 26, spooled: 25, published: 24, recorded: 4 });
});

test.each([
  ['invalid JSON', '{'],
  ['a value that is not a list', '"x"'],
  ['an invalid day', '[["00000000000000aa","2026-02-31",1,1,1]]'],
  ['an invalid gateway run', '[["x","2026-02-03",1,1,1]]'],
  ['invalid numbers', '[["00000000000000aa","2026-02-03",1,-1,"1"],null]'],
])('a header with %s loses no scan', async (_, header) => {
  const at = anotherDay();
  await handle([{ ...scanRecord(scanned, { at }), headers: { [GATEWAY_FIGURES]: header } }]);
  expect(await ledgerOf(at)).toMatchObject({ answered: 0, recorded: 1 });
});

test('waiting records are those after the last processed offset of each partition', async () => {
  const at = (partition: number, offset: bigint) => ({ ...scanRecord(scanned), partition, offset });
  await handle([at(3, 40n), at(3, 41n)]);
  await handle([at(4, 7n)]);
  const ends = new Map([
    [3, 50n],
    [4, 8n],
    [5, 2n],
  ]);
  const log = (id: string) => ({ ends: async () => ends, identity: async () => id });
  expect(await waitingRecords(database.pool, log(TOPIC_ID))).toBe(8 + 0 + 2);
  // All of a topic that was created instead of the former one, until something of a partition is recorded.
  expect(await waitingRecords(database.pool, log('another'))).toBe(50 + 8 + 2);
  await handle([at(3, 0n), at(3, 1n)], 0n, 'another');
  expect(await waitingRecords(database.pool, log('another'))).toBe(48 + 8 + 2);
});

test('an audit ends, also in Postgres, when its caller has gone', async () => {
  const at = anotherDay();
  const caller = new AbortController();
  const inPostgres = async () => {
    const { rows } = await database.pool.query(
      `select from pg_stat_activity where datname = current_database() and query like 'with archived%' and state = 'active'`,
    );
    return rows.length;
  };
  await transaction(database.pool, async (tx) => {
    // The audit waits for this.
    await tx.query('lock table scan_totals');
    const audit = auditScans(database, { from: at, to: at }, caller.signal);
    await expect.poll(inPostgres).toBe(1);
    caller.abort();
    await expect(audit).rejects.toThrow('aborted');
    await expect.poll(inPostgres).toBe(0);
  });
});

test('the audit finds a manipulated counter', async () => {
  const at = anotherDay();
  await handle([scanRecord(scanned, { at })]);
  await database.pool.query(`update scan_days set scans = scans + 1 where day = $1`, [dayOf(at)]);
  const { differences } = await auditScans(database, { from: at, to: at });
  expect(differences).toMatchObject(
    ['hours', 'scans', 'values', 'values', 'values', 'values', 'values', 'total'].map((counter) => ({ counter })),
  );
  await database.pool.query(`update scan_days set scans = scans - 1 where day = $1`, [dayOf(at)]);
  await database.pool.query(`update scan_ledger set recorded = 7 where day = $1`, [dayOf(at)]);
  expect((await auditScans(database, { from: at, to: at })).differences).toEqual([
    { code_id: null, day: dayOf(at), counter: 'ledger', expected: 1, counted: 7 },
  ]);
});

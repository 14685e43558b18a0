import fc from 'fast-check';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newUuid } from '../../../common/contract/ids.ts';
import { DAY_MS } from '../../../common/runtime/durations.ts';
import { freshDatabase } from '../../../test/harness/database.ts';
import { figuresOf } from '../../analytics/figures.ts';
import { type Database, openDatabase } from '../../db/database.ts';
import { entities } from '../../entities.ts';
import { dayOf } from '../days.ts';
import { foldIncrements } from '../fold-increments.ts';
import { auditScans } from '../ledger/audit-scans.ts';
import { inMemoryLog, newScannedCode, pollHandler, type ScannedCode, scanRecord, visitor } from '../scans.fixture.ts';
import { oneCode, scannedCodes } from './code-selection.ts';
import { topCodes } from './top-codes.ts';
import { splitByWeeks } from './weeks.ts';

let database: Database;
let record: ReturnType<typeof pollHandler>;

beforeAll(async () => {
  database = await openDatabase((await freshDatabase()).url, 6, entities);
  record = pollHandler({ log: inMemoryLog(), database, logger: pino({ level: 'silent' }) });
});
afterAll(() => database.close());

/** A scan of one of three codes; codes 0 and 1 are of one account. */
interface Scanned {
  readonly code: number;
  /** How many days ago. */
  readonly ago: number;
  readonly country: string;
  readonly referrer: string;
  readonly visitor: number;
}

const DAYS = 40;
const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;

const scans: fc.Arbitrary<Scanned[]> = fc.array(
  fc.record({
    code: fc.nat(2),
    // Many on few days, so that counters exist already when they are added to.
    ago: fc.oneof(fc.constantFrom(0, 1, 8), fc.nat(DAYS)),
    country: fc.constantFrom('DE', 'FR', 'GB'),
    referrer: fc.oneof(
      fc.constant('direct'),
      fc.nat(80).map((host) => `r${host}.example`),
    ),
    visitor: fc.nat(3),
  }),
  { maxLength: 150 },
);

/** The obvious way to count: every scan, one after the other. */
function countOneByOne(recorded: readonly Scanned[], codes: readonly number[], first: number, last: number) {
  const counted = recorded.filter(({ code, ago }) => codes.includes(code) && ago <= first && ago >= last);
  const by = (value: (scan: Scanned) => string) => {
    const sums = new Map<string, bigint>();
    for (const scan of counted) sums.set(value(scan), (sums.get(value(scan)) ?? 0n) + 1n);
    const sorted = [...sums].map(([name, count]) => ({ value: name, scans: count })).sort(mostFirst);
    if (sorted.length <= 50) return sorted;
    const rest = sorted.slice(49).reduce((sum, { scans }) => sum + scans, 0n);
    return [...sorted.slice(0, 49), { value: 'other', scans: rest }].sort(mostFirst);
  };
  const visitors = (of: readonly Scanned[]) =>
    BigInt(new Set(of.map(({ code, ago, visitor }) => `${code} ${ago} ${visitor}`)).size);
  const intervals = Array.from({ length: first - last + 1 }, (_, index) => {
    const ofDay = counted.filter(({ ago }) => ago === first - index);
    const start = dayOf(today - (first - index) * DAY_MS);
    return { start, scans: BigInt(ofDay.length), uniqueScans: visitors(ofDay) };
  });
  return {
    scans: BigInt(counted.length),
    uniqueScans: visitors(counted),
    intervals,
    countries: by(({ country }) => country),
    devices: by(() => 'mobile'),
    operatingSystems: by(() => 'iOS'),
    browsers: by(() => 'Safari'),
    referrers: by(({ referrer }) => referrer),
    targets: [],
  };
}

function mostFirst(a: { value: string; scans: bigint }, b: { value: string; scans: bigint }): number {
  if (a.scans !== b.scans) return a.scans > b.scans ? -1 : 1;
  return a.value < b.value ? -1 : a.value > b.value ? 1 : 0;
}

/** Only scans of today surely share visitors: those of days without a salt have their own, as they have here. */
function withOwnVisitors(polls: readonly (readonly Scanned[])[]): Scanned[][] {
  let next = 1_000;
  return polls.map((poll) => poll.map((scan) => (scan.ago > 0 ? { ...scan, visitor: next++ } : scan)));
}

test('reports equal a count of every scan, for any scans, days and folding', async () => {
  const windows = fc.array(fc.tuple(fc.nat(DAYS), fc.nat(DAYS)), { minLength: 1, maxLength: 4 });
  const polls = fc.array(fc.tuple(scans, fc.boolean()), { minLength: 1, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(polls, windows, async (drawn, days) => {
      const recorded = withOwnVisitors(drawn.map(([poll]) => poll));
      const [accountId, other] = [newUuid(), newUuid()];
      const codes = [accountId, accountId, other].map(
        (owner): ScannedCode => ({ ...newScannedCode(), accountId: owner }),
      );
      for (const [index, poll] of recorded.entries()) {
        await record(
          poll.map(({ code, ago, country, referrer, visitor: number }) =>
            scanRecord(codes[code] as ScannedCode, {
              at: today - ago * DAY_MS,
              country,
              referrerHost: referrer === 'direct' ? '' : referrer,
              visitor: visitor(number),
            }),
          ),
        );
        if (drawn[index]?.[1]) await foldIncrements(database.pool);
      }
      const all = recorded.flat();
      for (const [a, b] of days) {
        const [first, last] = [Math.max(a, b), Math.min(a, b)];
        const [from, to] = [today - first * DAY_MS, today - last * DAY_MS];
        const idOf = (code: number) => (codes[code] as ScannedCode).codeId;
        for (const [scope, numbers] of [
          [{}, [0, 1]],
          [{ codes: oneCode(idOf(0)) }, [0]],
          [{ codes: scannedCodes(accountId) }, [0, 1]],
        ] as const) {
          expect(await figuresOf(database.pool, { accountId, from, to, ...scope }, 'days')).toEqual(
            countOneByOne(all, numbers, first, last),
          );
        }
        const top = [0, 1]
          .map((code) => ({ value: idOf(code), scans: countOneByOne(all, [code], first, last).scans }))
          .filter(({ scans: count }) => count > 0n)
          .sort(mostFirst);
        for (const limit of [1, 2, 3]) {
          expect(await topCodes(database.pool, accountId, { from, to, limit })).toEqual(
            top.slice(0, limit).map(({ value, scans: count }) => ({ codeId: value, scans: count })),
          );
        }
      }
    }),
    { numRuns: 25 },
  );
  const audit = await auditScans(database, { from: today - 60 * DAY_MS, to: today });
  expect(audit.differences).toEqual([]);
}, 120_000);

test('the most scanned codes of a window are found among many that were scanned more before or as often', async () => {
  const accountId = newUuid();
  const { pool } = database;
  // 1,500 codes: the more scans in all, the fewer in the window; every third has as many as its neighbours.
  await pool.query(
    `with codes as (
       select gen_random_uuid() as id, n, 2000 - n as before, n / 3 as inside from generate_series(1, 1500) n
     ), totals as (
       insert into scan_totals (code_id, account_id, scans) select id, $1, before + inside from codes
     )
     insert into scan_days (code_id, day, account_id, scans, unique_scans)
     select id, $2::date - 100, $1::uuid, before, 1 from codes
     union all
     select id, $2::date, $1, inside, 1 from codes where inside > 0`,
    [accountId, dayOf(today)],
  );
  const { rows } = await pool.query<{ code_id: string; scans: string }>(
    'select code_id, scans from scan_days where account_id = $1 and day = $2 order by scans desc, code_id',
    [accountId, dayOf(today)],
  );
  const expected = rows.map(({ code_id, scans }) => ({ codeId: code_id, scans: BigInt(scans) }));
  for (const limit of [1, 7, 100, 1_499]) {
    const top = await topCodes(pool, accountId, { from: today, to: today, limit });
    expect(top).toEqual(expected.slice(0, limit));
  }
});

test('a range split by weeks covers exactly its days, with at most three to read at either end', () => {
  const day = fc.integer({ min: 18_262, max: 25_000 });
  fc.assert(
    fc.property(day, fc.nat(1_100), (start, length) => {
      const [from, to] = [start * DAY_MS, (start + length) * DAY_MS];
      const { firstWeek, lastWeek, edges } = splitByWeeks(from, to);
      const counted = new Map<number, number>();
      const count = (since: number, until: number, sign: number) => {
        for (let at = since; at <= until; at += DAY_MS) counted.set(at, (counted.get(at) ?? 0) + sign);
      };
      if (firstWeek <= lastWeek) {
        expect(new Date(firstWeek).getUTCDay()).toBe(1);
        expect(new Date(lastWeek).getUTCDay()).toBe(1);
        count(firstWeek, lastWeek + 6 * DAY_MS, 1);
      }
      for (const { since, until, sign } of edges) {
        count(since, until, sign);
        if (length >= 7) expect((until - since) / DAY_MS + 1).toBeLessThanOrEqual(3);
      }
      const days = [...counted].filter(([, times]) => times !== 0).sort(([a], [b]) => a - b);
      expect(days).toEqual(Array.from({ length: length + 1 }, (_, index) => [from + index * DAY_MS, 1]));
    }),
  );
});

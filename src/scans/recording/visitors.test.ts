import { afterAll, beforeAll, expect, test } from 'vitest';
import { visitorOf } from '../../../common/contract/visitor.ts';
import { DAY_MS, HOUR_MS } from '../../../common/runtime/durations.ts';
import { freshDatabase } from '../../../test/harness/database.ts';
import { type Database, openDatabase } from '../../db/database.ts';
import { entities } from '../../entities.ts';
import { destroySalts, makeSalts, unmatchedVisitor } from './visitors.ts';

const NOON = Date.UTC(2026, 4, 5, 12);
let database: Database;
beforeAll(async () => {
  database = await openDatabase((await freshDatabase()).url, 4, entities);
});
afterAll(() => database.close());

/** The salts of days in hexadecimal digits; undefined for those without one. */
async function saltsOf(...days: readonly string[]): Promise<(string | undefined)[]> {
  const { rows } = await database.pool.query<{ day: string; salt: string }>(
    `select day::text as day, encode(salt, 'hex') as salt from visitor_salts`,
  );
  return days.map((day) => rows.find((row) => row.day === day)?.salt);
}

test('cores create the salts of today and tomorrow once, a different one each day', async () => {
  await Promise.all(Array.from({ length: 4 }, () => makeSalts(database.pool, NOON)));
  const [today, tomorrow] = await saltsOf('2026-05-05', '2026-05-06');
  expect(today).toMatch(/^[0-9a-f]{64}$/);
  expect(tomorrow).not.toBe(today);
  await makeSalts(database.pool, NOON);
  expect(await saltsOf('2026-05-05', '2026-05-06', '2026-05-07')).toEqual([today, tomorrow, undefined]);
});

test("yesterday's salt is destroyed two hours into the day, and the day's visitors are deleted", async () => {
  await makeSalts(database.pool, NOON);
  await database.pool.query(
    `insert into scan_visitors select '2026-05-05', gen_random_uuid(), 1 from generate_series(1, 20001)`,
  );
  const midnight = NOON + DAY_MS / 2;

  await destroySalts(database.pool, midnight + 2 * HOUR_MS - 1);
  expect(await saltsOf('2026-05-05')).not.toEqual([undefined]);

  await destroySalts(database.pool, midnight + 2 * HOUR_MS);
  await makeSalts(database.pool, midnight + 2 * HOUR_MS);
  expect(await saltsOf('2026-05-05')).toEqual([undefined]);
  const { rows } = await database.pool.query('select count(*)::integer as visitors from scan_visitors');
  expect(rows).toEqual([{ visitors: 0 }]);
});

test('a visitor is the same all day and differs by address, user agent or salt', () => {
  const salt = '01'.repeat(32);
  const visitor = visitorOf(salt, '192.0.2.1', 'agent');
  expect(visitorOf(salt, '192.0.2.1', 'agent')).toBe(visitor);
  const others = [
    visitorOf(salt, '192.0.2.2', 'agent'),
    visitorOf(salt, '192.0.2.1', 'other'),
    visitorOf('02'.repeat(32), '192.0.2.1', 'agent'),
  ];
  expect(others).not.toContain(visitor);
});

test('an unmatched visitor is derived from the scan id alone and fits a bigint', () => {
  expect(unmatchedVisitor('019a0000-0000-7000-ffff-ffffffffffff')).toBe(-1n);
  expect(unmatchedVisitor('019a0000-0000-7000-8000-000000000000')).toBe(-(2n ** 63n));
});

import { afterAll, beforeAll, expect, test } from 'vitest';
import { freshDatabase } from '../../test/harness/database.ts';
import { type Database, openDatabase } from '../db/database.ts';
import { DAY_MS, HOUR_MS } from './days.ts';
import { destroySalts, loadSalts, type Salts, strangerOf, visitorOf } from './visitors.ts';

const NOON = Date.UTC(2026, 4, 5, 12);
let database: Database;
beforeAll(async () => {
  database = await openDatabase((await freshDatabase()).url, 4);
});
afterAll(() => database.close());

async function saltsOf(days: string[], now: number, salts: Salts = new Map()): Promise<Salts> {
  await loadSalts(database.pool, salts, days, now);
  return salts;
}

test('all recorders share the salt of a day, and no two days have the same', async () => {
  const days = ['2026-05-05', '2026-05-06'];
  const all = await Promise.all(Array.from({ length: 4 }, () => saltsOf(days, NOON)));
  expect(new Set(all.map((salts) => salts.get('2026-05-05'))).size).toBe(1);
  expect(all[0]?.get('2026-05-06')).not.toEqual(all[0]?.get('2026-05-05'));
});

test("yesterday's salt is destroyed two hours into the day, in Postgres and in memory, and can't be had again", async () => {
  const salts = await saltsOf(['2026-05-05'], NOON);
  await database.pool.query(`insert into scan_visitors values ('2026-05-05', gen_random_uuid(), 1)`);
  const midnight = NOON + DAY_MS / 2;

  await destroySalts(database.pool, midnight + 2 * HOUR_MS - 1);
  expect((await saltsOf(['2026-05-05'], midnight + 2 * HOUR_MS - 1)).size).toBe(1);

  await destroySalts(database.pool, midnight + 2 * HOUR_MS);
  await loadSalts(database.pool, salts, ['2026-05-05'], midnight + 2 * HOUR_MS);
  expect(salts.has('2026-05-05')).toBe(false);
  const { rows } = await database.pool.query(
    `select (select count(*) from visitor_salts where day = '2026-05-05')::integer as salts,
            (select count(*) from scan_visitors)::integer as visitors`,
  );
  expect(rows).toEqual([{ salts: 0, visitors: 0 }]);
});

test('a visitor is the same all day, and someone else by another address, user agent or salt', () => {
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

test('a stranger is told by the scan alone, and fits a bigint', () => {
  expect(strangerOf('019a0000-0000-7000-ffff-ffffffffffff')).toBe(-1n);
  expect(strangerOf('019a0000-0000-7000-8000-000000000000')).toBe(-(2n ** 63n));
});

import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freshDatabase } from '../../test/harness/database.ts';
import { newUuid } from '../contract/ids.ts';
import { transaction } from '../db/sql.ts';
import { BinaryRows } from './binary-rows.ts';

let pool: pg.Pool;
beforeAll(async () => {
  pool = new pg.Pool({ connectionString: (await freshDatabase()).url, max: 1 });
  await pool.query(`create temporary table told (n smallint, id uuid, at timestamptz, day date, name text, much bigint,
    little bigint)`);
});
afterAll(() => pool.end());

const row = fc.record({
  id: fc.uuid(),
  at: fc.integer({ min: Date.UTC(1900, 0, 1), max: Date.UTC(2200, 0, 1) }),
  day: fc
    .integer({ min: Date.UTC(1900, 0, 1), max: Date.UTC(2200, 0, 1) })
    .map((time) => new Date(time).toISOString().slice(0, 10)),
  name: fc.string({ unit: 'grapheme', maxLength: 60 }).map((text) => text.replaceAll('\0', '')),
  much: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  little: fc.integer({ min: -(2 ** 50), max: 2 ** 50 }),
});

test('Postgres reads what was written, of any type, in any number', async () => {
  const told = fc.tuple(fc.array(row, { maxLength: 20 }), fc.constantFrom(0, 64, 100_000));
  await fc.assert(
    fc.asyncProperty(told, async ([some, bytes]) => {
      await pool.query('truncate told');
      // More than there is room for at first.
      const all = Array.from({ length: 40 }, () => some).flat();
      const rows = new BinaryRows(bytes);
      for (const [n, { id, at, day, name, much, little }] of all.entries()) {
        rows.row(7);
        rows.smallint(n);
        rows.uuid(id);
        rows.time(at);
        rows.day(day);
        rows.text(name);
        rows.bigint(much);
        rows.bigint(little);
      }
      await transaction(pool, (tx) => rows.copyInto(tx, 'told'));
      const { rows: read } = await pool.query(
        `select id, (extract(epoch from at) * 1000)::float8 as at, day::text as day, name, much::text as much,
                little::float8 as little from told order by n`,
      );
      expect(read).toEqual(all.map((each) => ({ ...each, much: String(each.much) })));
    }),
    { numRuns: 60 },
  );
});

test('rows that break a constraint leave the connection usable', async () => {
  await pool.query('create temporary table once (id uuid primary key)');
  const id = newUuid();
  const rows = new BinaryRows();
  for (const each of [id, id]) {
    rows.row(1);
    rows.uuid(each);
  }
  const copying = transaction(pool, (tx) => rows.copyInto(tx, 'once'));
  await expect(copying).rejects.toMatchObject({ code: '23505' });
  expect((await pool.query('select from once')).rows).toEqual([]);
});

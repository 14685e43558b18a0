import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newUuid } from '../../common/contract/ids.ts';
import { transaction } from '../../common/postgres/sql.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { BinaryRows } from './binary-rows.ts';

let pool: pg.Pool;
beforeAll(async () => {
  pool = new pg.Pool({ connectionString: (await freshDatabase()).url, max: 1 });
  await pool.query(`create temporary table written (n smallint, id uuid, at timestamptz, day date, name text, much bigint,
    little bigint, whole integer, raw bytea, data jsonb, labels text[], nothing uuid)`);
});
afterAll(() => pool.end());

const text = fc.string({ unit: 'grapheme', maxLength: 60 }).map((text) => text.replaceAll('\0', ''));
const anyRow = fc.record({
  id: fc.uuid(),
  at: fc.integer({ min: Date.UTC(1900, 0, 1), max: Date.UTC(2200, 0, 1) }),
  day: fc
    .integer({ min: Date.UTC(1900, 0, 1), max: Date.UTC(2200, 0, 1) })
    .map((time) => new Date(time).toISOString().slice(0, 10)),
  name: fc.option(text),
  much: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  little: fc.integer({ min: -(2 ** 50), max: 2 ** 50 }),
  whole: fc.integer(),
  raw: fc.option(fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes))),
  data: fc.dictionary(text, text, { noNullPrototype: true }),
  labels: fc.array(text, { maxLength: 5 }),
  nothing: fc.constant(null),
});

test('Postgres reads rows of any type and number as they were written', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyRow, { maxLength: 20 }), fc.constantFrom(1, 40, 400), async (some, times) => {
      await pool.query('truncate written');
      // More rows than fit into one chunk.
      const all = Array.from({ length: times }, () => some).flat();
      await transaction(pool, (tx) =>
        BinaryRows.copyEach(tx, 'written', [...all.entries()], (rows, [n, row]) => {
          rows.row(12);
          rows.smallint(n);
          rows.uuid(row.id);
          rows.time(row.at);
          rows.day(row.day);
          rows.text(row.name);
          rows.bigint(row.much);
          rows.bigint(row.little);
          rows.integer(row.whole);
          rows.bytes(row.raw);
          rows.json(JSON.stringify(row.data));
          rows.texts(row.labels);
          rows.uuid(row.nothing);
        }),
      );
      const { rows: read } = await pool.query(
        `select id, (extract(epoch from at) * 1000)::float8 as at, day::text as day, name, much::text as much,
                little::float8 as little, whole, raw, data, labels, nothing from written order by n`,
      );
      expect(read).toEqual(all.map((each) => ({ ...each, much: String(each.much) })));
    }),
    { numRuns: 60 },
  );
});

test('a row larger than a chunk is written completely', async () => {
  const name = 'ü'.repeat(300_000);
  await pool.query('truncate written');
  await transaction(pool, (tx) =>
    BinaryRows.copyEach(tx, 'written (n, name)', [1, 2, 3], (rows, n) => {
      rows.row(2);
      rows.smallint(n);
      rows.text(name);
    }),
  );
  expect((await pool.query('select n, name from written order by n')).rows).toEqual(
    [1, 2, 3].map((n) => ({ n, name })),
  );
});

test('rows that violate a constraint or fail to be written leave the connection usable', async () => {
  await pool.query('create temporary table once (id uuid primary key)');
  const ids = Array.from({ length: 10_000 }, newUuid);
  const copy = (all: readonly string[], write: (id: string) => string) =>
    transaction(pool, (tx) =>
      BinaryRows.copyEach(tx, 'once', all, (rows, id) => {
        rows.row(1);
        rows.uuid(write(id));
      }),
    );
  const unchanged = (id: string) => id;
  await expect(copy([...ids, ...ids.slice(0, 1)], unchanged)).rejects.toMatchObject({ code: '23505' });
  await expect(copy([...ids.slice(0, 1), ...ids, ...ids], unchanged)).rejects.toMatchObject({ code: '23505' });
  const failing = (id: string) => {
    if (id === ids.at(-1)) throw new Error('no id');
    return id;
  };
  await expect(copy(ids, failing)).rejects.toThrow('no id');
  expect((await pool.query('select from once')).rows).toEqual([]);
});

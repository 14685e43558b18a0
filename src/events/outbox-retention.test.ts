import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { freshDatabase } from '../../test/harness/database.ts';
import { emptyOutdatedSlots, MAX_RETENTION_HOURS, outdatedSlots } from './outbox-retention.ts';

const { url } = await freshDatabase();
const pool = new pg.Pool({ connectionString: url, max: 4 });
afterAll(() => pool.end());

const slotAt = (hours: number) => Math.floor(hours / 6) % 15;

test('a slot with younger rows, or the next to be filled, is never outdated, and some slot always is', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 400_000, max: 600_000, noNaN: true }),
      fc.integer({ min: 0, max: MAX_RETENTION_HOURS }),
      (now, kept) => {
        const outdated = outdatedSlots(now, kept);
        expect(outdated.length).toBeGreaterThan(0);
        for (let age = -1; age <= kept; age++) expect(outdated).not.toContain(slotAt(now - age));
        // A row is deleted at most six hours late: once the last of its slot is older than the retention.
        const slotFull = (Math.floor(now / 6) + 1) * 6;
        expect(outdatedSlots(slotFull + kept, kept)).toContain(slotAt(now));
      },
    ),
  );
});

/** Adds a row written so many hours ago; returns its id. */
async function addRow(hoursAgo: number): Promise<number> {
  const { rows } = await pool.query<{ id: string }>(
    `insert into outbox (topic, key, at, slot)
     select 't', 'k', written, floor(date_part('epoch', written) / 21600)::bigint % 15
     from (select clock_timestamp() - $1 * interval '1 hour' as written) _ returning id`,
    [hoursAgo],
  );
  return Number(rows[0]?.id);
}

async function setPosition(last: number, holes: string): Promise<void> {
  await pool.query('update outbox_position set last = $1, holes = $2', [last, holes]);
}

async function remaining(): Promise<number[]> {
  const { rows } = await pool.query<{ id: string }>('select id from outbox order by id');
  return rows.map(({ id }) => Number(id));
}

beforeEach(() => pool.query('truncate outbox'));

test('published rows are deleted after the retention, and younger ones stay', async () => {
  const [old, young] = [await addRow(30.1), await addRow(23)];
  await setPosition(young, '{}');
  await emptyOutdatedSlots(pool, 24);
  expect(await remaining()).toEqual([young]);
  expect(old).toBeLessThan(young);
});

test('unpublished rows stay, however old they are', async () => {
  const rows = [await addRow(40), await addRow(40)] as const;
  await setPosition(rows[0], '{}');
  await emptyOutdatedSlots(pool, 24);
  expect(await remaining()).toEqual(rows);
  await setPosition(rows[1], `{[${rows[0]},${rows[1]})}`);
  await emptyOutdatedSlots(pool, 24);
  expect(await remaining()).toEqual(rows);
  await setPosition(rows[1], '{}');
  await emptyOutdatedSlots(pool, 24);
  expect(await remaining()).toEqual([]);
});

test('emptying waits for a backup that reads the outbox, without blocking others', async () => {
  const old = await addRow(40);
  await setPosition(old, '{}');
  const backup = await pool.connect();
  await backup.query('begin; select from outbox');
  await emptyOutdatedSlots(pool, 24);
  expect(await remaining()).toEqual([old]);
  await backup.query('commit');
  backup.release();
  await emptyOutdatedSlots(pool, 24);
  expect(await remaining()).toEqual([]);
});

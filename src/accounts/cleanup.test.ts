import pg from 'pg';
import { afterAll, expect, onTestFinished, test, vi } from 'vitest';
import { newUuid } from '../../common/contract/ids.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { createAccountCleanup } from './cleanup.ts';

const { url } = await freshDatabase();
const pool = new pg.Pool({ connectionString: url, max: 4 });
afterAll(() => pool.end());

test('an account that takes long to clear is cleared by one process at a time', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  await pool.query(
    `insert into accounts (id, name, plan, closed_at, delete_data, clear_at)
     values ($1, 'Test', 'business', now(), true, now())`,
    [newUuid()],
  );
  const erased = Promise.withResolvers<void>();
  let steps = 0;
  const step = async () => {
    steps++;
    await erased.promise;
  };
  const cleanup = createAccountCleanup(pool, { stop: [], erase: [step] });
  const sweep = cleanup.sweep();
  await vi.waitFor(() => expect(steps).toBe(1));
  await pool.query(`update accounts set clear_at = now() - interval '1 second'`);
  vi.advanceTimersByTime(60_000);
  await vi.waitFor(async () => {
    expect((await pool.query('select from accounts where clear_at > now()')).rowCount).toBe(1);
  });
  await cleanup.sweep();
  erased.resolve();
  await sweep;
  expect(steps).toBe(1);
});

test('an account that can’t be cleared does not hold up others that are due', async () => {
  const [failing, other] = [newUuid(), newUuid()];
  await pool.query(
    `insert into accounts (id, name, plan, closed_at, delete_data, clear_at)
     select id, 'Test', 'business', now(), true, now() - nth * interval '1 second'
     from unnest($1::uuid[]) with ordinality as account (id, nth)`,
    [[other, failing]],
  );
  const cleared: string[] = [];
  const step = async (id: string) => {
    if (id === failing) throw new Error('the archive can’t be read');
    cleared.push(id);
  };
  const cleanup = createAccountCleanup(pool, { stop: [], erase: [step] });
  await expect(cleanup.sweep()).rejects.toThrow('the archive can’t be read');
  expect(cleared).toEqual([other]);
});

test('an account is cleared again after a minute, then as long as it has been closed, at most a day, for 35 days', async () => {
  const hours = [0, 2, 300, 850];
  const ids = hours.map(() => newUuid());
  await pool.query(
    `insert into accounts (id, name, plan, closed_at, delete_data, clear_at)
     select id, 'Test', 'business', now() - hours * interval '1 hour', true, now()
     from unnest($1::uuid[], $2::integer[]) as account (id, hours)`,
    [ids, hours],
  );
  const cleanup = createAccountCleanup(pool, { stop: [], erase: [] });
  for (const id of ids) await cleanup.clear(id);
  const { rows } = await pool.query<{ minutes: number | null }>(
    `select round(extract(epoch from clear_at - now()) / 60)::integer as minutes from accounts
     where id = any($1) order by closed_at desc`,
    [ids],
  );
  expect(rows.map(({ minutes }) => minutes)).toEqual([1, 120, 1_440, null]);
});

import pg from 'pg';
import { afterAll, expect, onTestFinished, test, vi } from 'vitest';
import { newUuid } from '../../common/contract/ids.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { createAccountCleanup } from './cleanup.ts';

const { url } = await freshDatabase();
const pool = new pg.Pool({ connectionString: url, max: 4 });
afterAll(() => pool.end());

/** A clearing of accounts whose steps wait until `proceed` or `fail` is called. */
function clearing() {
  const { promise: proceeding, resolve: proceed, reject: fail } = Promise.withResolvers<void>();
  const steps: string[] = [];
  const step = (name: string) => async () => {
    steps.push(name);
    await proceeding;
  };
  const cleanup = createAccountCleanup(pool, { stop: [step('stop')], erase: [step('erase')] });
  return { steps, proceed, fail, cleanup };
}

/** A closed account that is due, and a clearing. */
async function closedAccount() {
  const id = newUuid();
  await pool.query(
    `insert into accounts (id, name, plan, closed_at, clear_at) values ($1, 'Test', 'business', now(), now())`,
    [id],
  );
  return { id, ...clearing() };
}

test('an account that takes long to clear is cleared by one process at a time', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const { id, steps, proceed, cleanup } = await closedAccount();
  const sweep = cleanup.sweep();
  await vi.waitFor(() => expect(steps).toEqual(['stop']));
  await pool.query(
    `update accounts set clear_at = past, clearing_until = past from (select now() - interval '1 s') t (past)`,
  );
  vi.advanceTimersByTime(60_000);
  await vi.waitFor(async () => {
    const { rowCount } = await pool.query('select from accounts where least(clear_at, clearing_until) > now()');
    expect(rowCount).toBe(1);
  });
  await cleanup.sweep();
  await cleanup.clear(id);
  expect(steps).toEqual(['stop']);
  proceed();
  await sweep;
});

test('an account that is closed again while it is cleared is cleared again afterwards, then with its data', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const { id, steps, proceed, cleanup } = await closedAccount();
  const first = cleanup.clear(id);
  await vi.waitFor(() => expect(steps).toEqual(['stop']));
  await pool.query(
    `update accounts set clear_at = now(), delete_data = true, clearing_until = now() + interval '1 minute' where id = $1`,
    [id],
  );
  // The lease is renewed, and the account stays due.
  vi.advanceTimersByTime(60_000);
  await vi.waitFor(async () => {
    const { rowCount } = await pool.query(
      `select from accounts where id = $1 and clearing_until > now() + interval '2 minutes'`,
      [id],
    );
    expect(rowCount).toBe(1);
  });
  await cleanup.clear(id);
  await cleanup.sweep();
  expect(steps).toEqual(['stop']);
  proceed();
  await first;
  await cleanup.sweep();
  expect(steps).toEqual(['stop', 'stop', 'erase']);
});

test.each([
  ['completes', 'proceed'],
  ['fails', 'fail'],
] as const)('a clearing whose lease was taken over, and that %s then, leaves the next one leased', async (_, end) => {
  const { id, steps, [end]: endFirst, cleanup } = await closedAccount();
  const first = cleanup.clear(id);
  await vi.waitFor(() => expect(steps).toEqual(['stop']));
  // The first core is suspended until its lease is over, and the account is closed again, with its data.
  await pool.query(
    `update accounts set delete_data = true, closed_at = now() - interval '36 days', clear_at = now(),
       clearing_until = now() - interval '1 s' where id = $1`,
    [id],
  );
  const next = clearing();
  const second = next.cleanup.clear(id);
  await vi.waitFor(() => expect(next.steps).toEqual(['stop']));
  const read = async () =>
    (await pool.query('select clear_at, clearing_until, clearing_by from accounts where id = $1', [id])).rows;
  const before = await read();
  endFirst();
  await first.catch(() => undefined);
  expect(await read()).toEqual(before);
  expect(before).not.toContainEqual(expect.objectContaining({ clear_at: null }));
  next.proceed();
  await second;
  expect(next.steps).toEqual(['stop', 'erase']);
});

test('an account that can’t be cleared does not hold up others that are due, and is not due at once', async () => {
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
  await expect(cleanup.sweep()).resolves.toBeUndefined();
  await expect(cleanup.clear(failing)).rejects.toThrow('the archive can’t be read');
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

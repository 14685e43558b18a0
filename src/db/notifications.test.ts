import pg from 'pg';
import { pino } from 'pino';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { freshDatabase } from '../../test/harness/database.ts';
import { listen, notifying } from './notifications.ts';

const EVENTUALLY = { interval: 25 };
/** Longer than any test: only a notification ends a wait. */
const NEVER_MS = 3_600_000;
const logger = pino({ level: 'silent' });
const { url } = await freshDatabase();
const pool = new pg.Pool({ connectionString: url, max: 4, application_name: 'test-notifications' });
pool.on('error', () => undefined);
afterAll(() => pool.end());

async function listening(on = pool) {
  const notifications = listen(on, logger, { fallbackMs: NEVER_MS });
  onTestFinished(() => notifications.stop());
  const wakeup = notifications.wakeup('outbox', NEVER_MS);
  return { notifications, wakeup };
}

/** Waits until notifications arrive, and resets the wake-up, which that has notified. */
async function arriving({ notifications, wakeup }: Awaited<ReturnType<typeof listening>>) {
  await expect.poll(notifications.arriving, EVENTUALLY).toBe(true);
  await wakeup.wait();
}

const notify = () => pool.query(`select ${notifying('outbox')}`);

test('a committed notification ends a wait, and a rolled-back one does not', async () => {
  const listener = await listening();
  await arriving(listener);
  let woken = false;
  const wait = listener.wakeup.wait().then(() => {
    woken = true;
  });
  await pool.query(`begin; select ${notifying('outbox')}; rollback`);
  await pool.query(`select ${notifying('webhooks')}`);
  // Notifications arrive in the order of their commits, so this one would come after.
  const other = listener.notifications.wakeup('domains', NEVER_MS);
  const otherWoken = other.wait();
  await pool.query(`select ${notifying('domains')}`);
  await otherWoken;
  expect(woken).toBe(false);
  await notify();
  await wait;
});

test('a notification that arrives between two waits ends the next one', async () => {
  const listener = await listening();
  await arriving(listener);
  const other = listener.notifications.wakeup('domains', NEVER_MS);
  const otherWoken = other.wait();
  await notify();
  await pool.query(`select ${notifying('domains')}`);
  await otherWoken;
  await listener.wakeup.wait();
});

test('when the listening connection is lost, all waits end and the connection is replaced', async () => {
  const listener = await listening();
  await arriving(listener);
  const wait = listener.wakeup.wait();
  const ended = await pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and query like 'listen %'`,
  );
  expect(ended.rowCount).toBe(1);
  // All waits end, as notifications may have been missed meanwhile.
  await wait;
  await arriving(listener);
  const next = listener.wakeup.wait();
  await notify();
  await next;
});

test('where LISTEN succeeds but no notification arrives, waits poll', async () => {
  // Notifications stay in their database.
  const other = new pg.Pool({ connectionString: (await freshDatabase()).url, max: 1 });
  onTestFinished(() => other.end());
  const misdirectedPool = Object.assign(Object.create(pool) as pg.Pool, { options: other.options });
  const notifications = listen(misdirectedPool, logger, { fallbackMs: NEVER_MS });
  onTestFinished(() => notifications.stop());
  const wakeup = notifications.wakeup('outbox', 10);
  await expect
    .poll(
      async () => (await pool.query(`select from pg_stat_activity where query like 'listen %'`)).rowCount,
      EVENTUALLY,
    )
    .toBe(1);
  for (let turn = 0; turn < 5; turn++) await wakeup.wait();
  expect(notifications.arriving()).toBe(false);
});

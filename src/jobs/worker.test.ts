import type { PoolClient } from 'pg';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { newUuid } from '../../common/contract/ids.ts';
import { transaction } from '../../common/postgres/sql.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { insertAccount } from '../../test/harness/insert-account.ts';
import { BATCH_TASK } from '../batches/advance.ts';
import { openDatabase } from '../db/database.ts';
import { entities } from '../entities.ts';
import { TARGET_CHANGE_TASK } from '../targets/changes/apply.ts';
import { schedule } from './task.ts';
import { startWorker } from './worker.ts';

const IDLE_TASK = { task: BATCH_TASK, advance: async () => false };
const EVENTUALLY = { interval: 50 };

test('unfinished work of every task that no process does is done', async () => {
  const { url } = await freshDatabase();
  const database = await openDatabase(url, 3, entities);
  onTestFinished(() => database.close());
  const { pool } = database;
  const account = await insertAccount(pool);
  const [batch, change] = [newUuid(), newUuid()];
  await pool.query(
    `insert into batches (id, account_id, foreground_color, background_color, total, failed, skipped)
     values ($1, $2, '#000000', '#ffffff', 1, 0, 0)`,
    [batch, account],
  );
  await pool.query(
    `insert into target_changes (id, account_id, dry_run, author, note, total, failed)
     values ($1, $2, false, '', '', 1, 0)`,
    [change, account],
  );
  const done: string[] = [];
  const tasks = [BATCH_TASK, TARGET_CHANGE_TASK].map((task) => ({
    task,
    async advance(id: string) {
      done.push(`${task.name} ${id}`);
      return false;
    },
  }));
  const worker = startWorker({ databaseUrl: url, database, tasks, logger: pino({ level: 'silent' }) });
  onTestFinished(() => worker.stop());
  await expect
    .poll(() => done.toSorted(), EVENTUALLY)
    .toEqual([`${BATCH_TASK.name} ${batch}`, `${TARGET_CHANGE_TASK.name} ${change}`].toSorted());
});

test('the jobs of processes that died are deleted a day after their work got a new job', async () => {
  const { url } = await freshDatabase();
  const database = await openDatabase(url, 3, entities);
  onTestFinished(() => database.close());
  const { pool } = database;
  const [taken, recent] = [newUuid(), newUuid()];
  // A replaced job is locked, without a key, and has no attempts left.
  await pool.query(`select graphile_worker.add_job('other', job_key := key) from unnest($1::text[]) as key`, [
    [taken, recent],
  ]);
  await pool.query(
    `update graphile_worker._private_jobs set locked_by = 'died', attempts = 1,
       locked_at = now() - case key when $1 then interval '25 hours' else interval '23 hours' end`,
    [taken],
  );
  await pool.query(`select graphile_worker.add_job('other', job_key := key) from unnest($1::text[]) as key`, [
    [taken, recent],
  ]);
  const jobs = async () =>
    (await pool.query('select key, locked_by from graphile_worker._private_jobs order by id')).rows;
  const successors = [taken, recent].map((key) => ({ key, locked_by: null }));
  const replaced = { key: null, locked_by: 'died' };
  expect(await jobs()).toEqual([replaced, replaced, ...successors]);
  const worker = startWorker({ databaseUrl: url, database, tasks: [IDLE_TASK], logger: pino({ level: 'silent' }) });
  onTestFinished(() => worker.stop());
  await expect.poll(jobs, EVENTUALLY).toEqual([replaced, ...successors]);
});

test.each([
  { what: 'new', scheduleNew: (tx: PoolClient, id: string) => schedule(tx, BATCH_TASK, id) },
  { what: 'stalled', scheduleNew: async () => undefined },
])('the $what work of an account does not wait until all of another account is done', async ({ scheduleNew }) => {
  const { url } = await freshDatabase();
  const database = await openDatabase(url, 6, entities);
  onTestFinished(() => database.close());
  const { pool } = database;
  /** Stores batches of a new account that has completed others, one after the other. */
  async function batchesOf(count: number, completed = 0): Promise<string[]> {
    const account = await insertAccount(pool);
    await pool.query(
      `insert into batches (id, account_id, foreground_color, background_color, total, failed, skipped, completed_at)
       select gen_random_uuid(), $1, '#000000', '#ffffff', 1, 0, 0, now() from generate_series(1, $2)`,
      [account, completed],
    );
    const batches = Array.from({ length: count }, newUuid);
    for (const batch of batches) {
      await transaction(pool, async (tx) => {
        await tx.query(
          `insert into batches (id, account_id, foreground_color, background_color, total, failed, skipped)
           values ($1, $2, '#000000', '#ffffff', 1, 0, 0)`,
          [batch, account],
        );
        await scheduleNew(tx, batch);
      });
    }
    return batches;
  }
  const [many, [single]] = [await batchesOf(20), await batchesOf(1, 50)];
  const done: string[] = [];
  async function advance(id: string): Promise<boolean> {
    done.push(id);
    await pool.query('update batches set completed_at = now() where id = $1', [id]);
    return false;
  }
  const logger = pino({ level: 'silent' });
  const worker = startWorker({ databaseUrl: url, database, tasks: [{ task: BATCH_TASK, advance }], logger });
  onTestFinished(() => worker.stop());
  await expect.poll(() => done.length, EVENTUALLY).toBeGreaterThanOrEqual(many.length + 1);
  expect(done.indexOf(single ?? '')).toBeLessThan(5);
});

test.each([
  { table: 'batches', task: BATCH_TASK, columns: 'foreground_color, background_color, skipped', values: `'', '', 0` },
  { table: 'target_changes', task: TARGET_CHANGE_TASK, columns: 'dry_run, author, note', values: `false, '', ''` },
])('to schedule work, the unfinished work of its account is read alone: $table', async (kind) => {
  const { table, task, columns, values } = kind;
  const { url } = await freshDatabase();
  const { pool, close } = await openDatabase(url, 2, entities);
  onTestFinished(close);
  await pool.query(`
    insert into accounts (id, name, plan) select gen_random_uuid(), nth, 'business' from generate_series(1, 100) nth;
    insert into ${table} (id, account_id, total, failed, completed_at, ${columns})
      select gen_random_uuid(), id, 1, 0, case when name = '1' then now() end, ${values}
      from accounts, generate_series(1, 5000) nth where name = '1' or nth <= 50;
    analyze ${table}`);
  const { rows } = await pool.query<{ 'QUERY PLAN': string }>(`explain ${task.schedule.text}`, [newUuid()]);
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  expect(plan).toMatch(new RegExp(`${table}_unfinished.*\n *Index Cond: \\(account_id = w.account_id\\)`));
  expect(plan).not.toMatch(`${table}_listed`);
});

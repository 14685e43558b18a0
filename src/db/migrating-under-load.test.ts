import type pg from 'pg';
import type { Logger } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { freshDatabase } from '../../test/harness/database.ts';
import { recordingLogger } from '../../test/harness/recording-logger.ts';
import { entities } from '../entities.ts';
import { type Database, openDatabase } from './database.ts';

/** They lock tables of scans, in another order than recorders. */
const MIGRATIONS = ['0016-scan-rollups', '0022-scan-targets'];

/** A database with the schema before these migrations. */
async function olderDatabase(logger?: Logger): Promise<Database> {
  const database = await openDatabase((await freshDatabase()).url, 6, entities, logger);
  onTestFinished(() => database.close());
  await database.pool.query(`
    drop table scan_increments, scan_rollups, scan_targets;
    drop function note_scan_days, note_scan_values, delete_scan_targets cascade;
    alter table scans drop column target_version, drop column target_rule, drop column target_variant;
    delete from migrations where name in ('${MIGRATIONS.join(`', '`)}')`);
  return database;
}

async function applied({ pool }: Database): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>(
    'select name from migrations where name = any($1) order by name',
    [MIGRATIONS],
  );
  return rows.map(({ name }) => name);
}

/** A transaction that has locked a table, by default as writing does. */
async function transactionOn(table: string, { pool }: Database, mode = 'row exclusive'): Promise<pg.PoolClient> {
  const client = await pool.connect();
  await client.query(`begin; lock table ${table} in ${mode} mode`);
  return client;
}

function isWaiting(client: pg.PoolClient) {
  return async () => {
    const { rows } = await client.query<{ waiting: number }>(
      `select count(*)::integer as waiting from pg_locks
       where not granted and database = (select oid from pg_database where datname = current_database())`,
    );
    return rows[0]?.waiting;
  };
}

test('a migration that waits for a transaction holds no locks of earlier migrations that the transaction needs', async () => {
  const database = await olderDatabase();
  const recorder = await transactionOn('scans', database);
  const migrated = database.migrate();
  migrated.catch(() => undefined);
  await expect.poll(isWaiting(recorder)).toBe(1);
  await recorder.query('lock table scan_days in row exclusive mode');
  await recorder.query('commit');
  recorder.release();
  await migrated;
  expect(await applied(database)).toEqual(MIGRATIONS);
});

test('a migration that deadlocks is repeated', async () => {
  const database = await olderDatabase();
  const recorder = await transactionOn('scan_values', database);
  const migrated = database.migrate();
  migrated.catch(() => undefined);
  await expect.poll(isWaiting(recorder)).toBe(1);
  // Postgres ends the deadlock for whoever has waited for a second first: nearly always the migration.
  await recorder.query('lock table scan_days in row exclusive mode').catch(() => undefined);
  await recorder.query('rollback');
  recorder.release();
  await migrated;
  expect(await applied(database)).toEqual(MIGRATIONS);
});

test('a migration that waits for a backup lets others read the table, and other cores wait for the migration', async () => {
  const { lines, logger } = recordingLogger();
  const database = await olderDatabase(logger);
  const backup = await transactionOn('scans', database, 'access share');
  const migrated = Promise.all([database.migrate(), database.migrate()]);
  migrated.catch(() => undefined);
  // One for the table, and the other for the first.
  await expect.poll(isWaiting(backup)).toBe(2);
  await database.pool.query('select from scans');
  await expect.poll(() => lines.join()).toContain('a migration waits for a backup');
  expect(await applied(database)).toEqual(['0016-scan-rollups']);
  await backup.query('rollback');
  backup.release();
  await migrated;
  expect(await applied(database)).toEqual(MIGRATIONS);
});

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { OperatorError } from '../../common/runtime/operator-error.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { entities } from '../entities.ts';
import { type Database, openDatabase } from './database.ts';
import { migrations } from './migrations/index.ts';

const run = promisify(execFile);
const LAST = migrations.at(-1)?.name ?? '';

async function open(): Promise<{ url: string; database: Database }> {
  const { url } = await freshDatabase({ migrated: false });
  const database = await openDatabase(url, 2, entities);
  onTestFinished(() => database.close());
  return { url, database };
}

test('an empty database is migrated once, before which cores that don’t migrate refuse to start', async () => {
  const { database } = await open();
  await expect(database.expectMigrated()).rejects.toThrow(/^The schema is older than this release: run/);
  expect(await database.migrate()).toBe('older');
  expect(await database.migrate()).toBe('current');
  await database.expectMigrated();
});

test('a newer schema is used if its release says so, and otherwise refused with a sentence that names both', async () => {
  const { database } = await open();
  await database.migrate();
  await database.pool.query(`insert into migrations (name) values ('9000-later')`);
  expect(await database.migrate()).toBe('newer');
  await database.expectMigrated();
  await database.pool.query(`comment on table migrations is 'oldest release: 9000'`);
  const refused = new OperatorError(
    `The schema is that of a newer release (9000-later), which this one (${LAST}) can't use: start the newer one.`,
  );
  await expect(database.migrate()).rejects.toThrow(refused);
  await expect(database.expectMigrated()).rejects.toThrow(refused);
});

test('npm run migrate says what it did, in one sentence', async () => {
  const { url, database } = await open();
  const migrate = (env: Record<string, string> = { DATABASE_URL: url }) =>
    run(process.execPath, [join(import.meta.dirname, '../migrate.ts')], { env: { PATH: process.env.PATH, ...env } });
  expect(await migrate()).toEqual({ stdout: `The schema is up to date: ${LAST}.\n`, stderr: '' });
  expect(await migrate()).toEqual({ stdout: `The schema is up to date: ${LAST}.\n`, stderr: '' });
  await database.pool.query(`insert into migrations (name) values ('9000-later')`);
  expect((await migrate()).stdout).toBe(
    'The schema is newer than this release, which can use it. Nothing was changed.\n',
  );
  await expect(migrate({})).rejects.toMatchObject({
    code: 1,
    stderr: 'DATABASE_URL is needed: a Postgres address.\n',
  });
});

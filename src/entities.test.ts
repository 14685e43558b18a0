import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { freshDatabase } from '../test/harness/database.ts';
import { openDatabase } from './db/database.ts';
import { entities } from './entities.ts';

const ROOT = new URL('..', import.meta.url);

/** What the ORM would run to make the schema of a database what the entities are. */
async function difference(url: string): Promise<string> {
  const { orm, close } = await openDatabase(url, 2, entities);
  onTestFinished(close);
  return (await orm.schema.getUpdateSchemaMigrationSQL({ wrap: false })).up;
}

async function changed(url: string, sql: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  await client.query(sql);
  await client.end();
}

test('entities are what the migrations make', async () => {
  expect(await difference((await freshDatabase()).url)).toBe('');
});

test.each([
  ['a column', 'alter table codes add column notes text', 'alter table "codes" drop column "notes"'],
  ['a type', 'alter table tags alter column name type varchar(9)', 'alter table "tags" alter column "name" type text'],
  ['a default', 'alter table codes alter column paused drop default', '"paused" set default false'],
  ['a null', 'alter table codes alter column name set not null', '"name" drop not null'],
  ['an index', 'drop index codes_listed', 'create index "codes_listed"'],
  ['a constraint', 'alter table batch_rows drop constraint batch_rows_outcome_check', 'batch_rows_outcome_check'],
  ['a reference', 'alter table members drop constraint members_account_id_fkey', 'members_account_id_fkey'],
  ['a table', 'create table notes (id uuid primary key)', 'drop table if exists "notes"'],
])('%s that only one of the two has is found', async (_, sql, repair) => {
  const { url } = await freshDatabase();
  await changed(url, sql);
  expect(await difference(url)).toContain(repair);
});

/** Runs the ORM's own command line. */
async function mikroOrm(url: string, ...args: string[]): Promise<{ code: number; stdout: string }> {
  const options = { cwd: ROOT, env: { ...process.env, DATABASE_URL: url, NO_COLOR: '1' } };
  const run = promisify(execFile)(process.execPath, ['node_modules/.bin/mikro-orm', ...args], options);
  return run.then(
    ({ stdout }) => ({ code: 0, stdout }),
    (failed: { code: number; stdout: string; stderr: string }) => ({
      code: failed.code,
      stdout: failed.stdout + failed.stderr,
    }),
  );
}

test("the ORM's command line checks the schema and writes migrations", async () => {
  const { url } = await freshDatabase();
  const folder = await mkdtemp(join(tmpdir(), 'signpost-migrations-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  expect(await mikroOrm(url, 'migration:check')).toMatchObject({ code: 0 });
  expect(await mikroOrm(url, 'migration:pending')).toMatchObject({ code: 0 });

  await changed(url, 'alter table codes drop column campaign_type');
  expect((await mikroOrm(url, 'migration:check')).code).not.toBe(0);
  expect(await mikroOrm(url, 'migration:create', '--path', folder, '--name', 'campaigns')).toMatchObject({ code: 0 });
  const [file = ''] = await readdir(folder);
  expect(file).toMatch(/^\d{4}-campaigns\.ts$/);
  expect(await readFile(join(folder, file), 'utf8')).toContain('alter table "codes" add "campaign_type" text null');
}, 120_000);

import { Client } from 'pg';
import { expect, test } from 'vitest';
import { freshDatabase } from './database.ts';

async function tables(url: string): Promise<string[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ name: string }>(
    `select tablename as name from pg_tables where schemaname = 'public'`,
  );
  await client.query('create table mine (id int)');
  await client.end();
  return rows.map(({ name }) => name);
}

test('a fresh database is migrated and shares nothing with another one', async () => {
  const [one, other] = [await freshDatabase(), await freshDatabase()];
  expect(await tables(one.url)).toContain('accounts');
  expect(await tables(other.url)).not.toContain('mine');
});

import { afterAll, expect, test } from 'vitest';
import { newUuid } from '../../common/contract/ids.ts';
import { transaction } from '../../common/postgres/sql.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { insertAccount } from '../../test/harness/insert-account.ts';
import { openDatabase } from '../db/database.ts';
import { entities } from '../entities.ts';
import { advance } from './advance.ts';

const { orm, pool, close } = await openDatabase((await freshDatabase()).url, 2, entities);
afterAll(close);

// Such a second job would otherwise wait in the place of another account's work.
test('a job ends if another one creates the codes of the batch, and the last one announces it', async () => {
  const account = await insertAccount(pool, { plan: 'enterprise' });
  const batch = newUuid();
  await pool.query(
    `insert into batches (id, account_id, foreground_color, background_color, total, failed, skipped)
     values ($1, $2, '#000000', '#ffffff', 1001, 1001, 0)`,
    [batch, account],
  );
  const next = () => advance(orm, 'https://signpost.example', batch);
  await transaction(pool, async (tx) => {
    await tx.query('select from batches where id = $1 for update', [batch]);
    expect(await next()).toBe(false);
  });
  expect(await next()).toBe(true);
  expect(await next()).toBe(false);
  const { rows } = await pool.query(`select headers->>'ce_type' as type from outbox`);
  expect(rows).toEqual([{ type: 'bulk.completed' }]);
});

// A merge of a tag of very many codes locks it for a minute, in which such jobs would hold the places of other
// accounts' work.
test('a job ends if a label of its rows stays locked', async () => {
  const account = await insertAccount(pool, { plan: 'enterprise' });
  const batch = newUuid();
  await pool.query('insert into code_counts (account_id) values ($1)', [account]);
  await pool.query(`insert into tags (id, account_id, name) values ($1, $2, 'menu')`, [newUuid(), account]);
  await pool.query(
    `insert into batches (id, account_id, foreground_color, background_color, total, failed, skipped)
     values ($1, $2, '#000000', '#ffffff', 1, 0, 0)`,
    [batch, account],
  );
  await pool.query(
    `insert into batch_rows (batch_id, index, target_url, tags, code_id) values ($1, 0, 'https://example.com/', '{menu}', $2)`,
    [batch, newUuid()],
  );
  const next = () => advance(orm, 'https://signpost.example', batch);
  const position = async () =>
    (await pool.query('select position from batches where id = $1', [batch])).rows[0].position;
  await transaction(pool, async (tx) => {
    await tx.query('select from tags where account_id = $1 for update', [account]);
    expect(await next()).toBe(false);
  });
  expect(await position()).toBe(0);
  expect(await next()).toBe(false);
  expect(await position()).toBe(1);
});

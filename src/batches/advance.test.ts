import { afterAll, expect, test } from 'vitest';
import { newUuid } from '../../common/contract/ids.ts';
import { transaction } from '../../common/postgres/sql.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { openDatabase } from '../db/database.ts';
import { entities } from '../entities.ts';
import { advance } from './advance.ts';

const { orm, pool, close } = await openDatabase((await freshDatabase()).url, 2, entities);
afterAll(close);

// Such a second job would otherwise wait in the place of another account's work.
test('a job ends if another one creates the codes of the batch, and the last one announces it', async () => {
  const [account, batch] = [newUuid(), newUuid()];
  await pool.query(`insert into accounts (id, name, plan) values ($1, 'Test', 'enterprise')`, [account]);
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

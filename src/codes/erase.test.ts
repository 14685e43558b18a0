import { expect, onTestFinished, test } from 'vitest';
import { newUuid } from '../../common/contract/ids.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { columnsOf, listed } from '../db/columns.ts';
import { openDatabase } from '../db/database.ts';
import { entities } from '../entities.ts';
import { eraseCodes } from './close.ts';
import { CodeEntity } from './entities.ts';

/** What may be left of a code: none of it was written by a customer. */
const LEFT = ['account_id', 'created_at', 'deleted_at', 'id', 'paused', 'short_code', 'type', 'updated_at', 'version'];

/** A value of each type that no default is. */
const WRITTEN: Record<string, string> = {
  text: `'written'`,
  uuid: 'gen_random_uuid()',
  jsonb: `'{"title": "written"}'`,
  boolean: 'true',
};

test('erasing leaves nothing of a deleted code that a customer wrote, whatever columns codes have', async () => {
  const { pool, close } = await openDatabase((await freshDatabase()).url, 3, entities);
  onTestFinished(close);
  const accountId = newUuid();
  await pool.query(`insert into accounts (id, name, plan) values ($1, 'Test', 'business')`, [accountId]);
  await pool.query('alter table codes drop constraint codes_folder_id_fkey');
  const others = columnsOf(CodeEntity).filter(({ name }) => !LEFT.includes(name));
  await pool.query(
    `insert into codes (account_id, id, type, short_code, deleted_at, ${listed(others)})
     values ($1, $2, 'dynamic', 'abcdefg', now(), ${others.map(({ type }) => WRITTEN[type] ?? type).join(', ')})`,
    [accountId, newUuid()],
  );

  await eraseCodes(pool, accountId);

  const { rows } = await pool.query<Record<string, unknown>>('select * from codes');
  const left = Object.entries(rows[0] ?? {}).filter(([, value]) => value !== null);
  expect(Object.fromEntries(left)).toMatchObject({ foreground_color: '#000000', background_color: '#ffffff' });
  expect(left.map(([name]) => name).sort()).toEqual(['background_color', 'foreground_color', ...LEFT].sort());
});

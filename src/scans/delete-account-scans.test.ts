import pg from 'pg';
import { afterAll, expect, test } from 'vitest';
import { NIL_UUID, newUuid } from '../../common/contract/ids.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { statementsOf } from '../db/statements.fixture.ts';
import { deleteAccountScans } from './delete-account-scans.ts';

const CODES = 1_001;

const pool = new pg.Pool({ connectionString: (await freshDatabase()).url });
afterAll(() => pool.end());

test('the codes of an account are listed in pages, and the scans of all of them are deleted', async () => {
  const [account, other] = [newUuid(), newUuid()];
  const codeIds = Array.from({ length: CODES }, newUuid);
  await pool.query(
    `insert into scan_totals (account_id, code_id, scans)
     select $1::uuid, id, 1 from unnest($2::uuid[]) as code (id) union all select $3::uuid, gen_random_uuid(), 1`,
    [account, codeIds, other],
  );
  const statements = await statementsOf(() => deleteAccountScans(pool, '/nowhere', account));
  const lists = statements.filter(({ name }) => name === 'scans_list_codes_to_delete');
  expect(lists.map(({ values }) => values)).toEqual([
    [account, NIL_UUID],
    [account, codeIds[CODES - 2]],
  ]);
  const { rows } = await pool.query('select account_id from scan_totals');
  expect(rows).toEqual([{ account_id: other }]);
});

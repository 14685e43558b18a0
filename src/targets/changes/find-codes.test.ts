import { afterAll, expect, test } from 'vitest';
import { newUuid } from '../../../common/contract/ids.ts';
import { freshDatabase } from '../../../test/harness/database.ts';
import { insertAccount } from '../../../test/harness/insert-account.ts';
import { newShortCode } from '../../codes/create/short-code.ts';
import { openDatabase } from '../../db/database.ts';
import { entities } from '../../entities.ts';
import { CODE_PROBLEMS, findCodes } from './find-codes.ts';
import type { Reference } from './read-rows.ts';

const { pool, close } = await openDatabase((await freshDatabase()).url, 2, entities);
afterAll(close);

/** A row with this reference. */
const rowOf = (kind: Reference['kind'], text: string) => ({
  reference: { kind, text },
  targetUrl: 'https://example.com',
  policy: null,
  problem: undefined,
});

/** An account with a batch of codes with these external references. Returns its UUID, and the codes' in order. */
async function newAccount(...codes: readonly { reference: string; deleted?: boolean }[]) {
  const account = await insertAccount(pool, { plan: 'enterprise' });
  const batch = newUuid();
  await pool.query(
    `insert into batches (id, account_id, foreground_color, background_color, total, failed, skipped)
     values ($1, $2, '#000000', '#ffffff', $3, 0, 0)`,
    [batch, account, codes.length],
  );
  const ids = codes.map(() => newUuid());
  for (const [index, { reference, deleted }] of codes.entries()) {
    await pool.query(
      `insert into codes (account_id, id, type, short_code, target_url, deleted_at)
       values ($1, $2, 'dynamic', $3, 'https://example.com', $4)`,
      [account, ids[index], newShortCode(), deleted ? new Date() : null],
    );
    await pool.query(
      `insert into batch_rows (batch_id, index, external_ref, code_id, tags) values ($1, $2, $3, $4, '{}')`,
      [batch, index, reference, ids[index]],
    );
  }
  return { account, ids };
}

/** The plan that Postgres uses from the sixth time on that a connection finds codes by references of this kind. */
async function laterPlan(kind: Reference['kind']): Promise<string> {
  const texts: string[] = [];
  const explaining = {
    async query(query: { readonly text: string }) {
      texts.push(query.text);
      return { rows: [] };
    },
  };
  await findCodes(explaining, newUuid(), [rowOf(kind, 'one')]);
  const plans = texts.map((text) => pool.query<{ 'QUERY PLAN': string }>(`explain (generic_plan, costs off) ${text}`));
  return (await Promise.all(plans)).flatMap(({ rows }) => rows.map((line) => line['QUERY PLAN'])).join('\n');
}

// In such a plan, Postgres compares a column to each element of an array, one after the other: 25,000 rows took 4 s.
test('finding codes never compares every code of an account with every row of a change', async () => {
  const plans = { short: await laterPlan('short_code'), external: await laterPlan('external_ref') };
  expect(plans.short).toMatch(
    /Index Scan using codes_short_code_key on codes\n\s+Index Cond: \(short_code = n.reference\)/,
  );
  expect(plans.external).toMatch(/ANY \(external_ref = \(hashed SubPlan \d+\)/);
  for (const plan of Object.values(plans)) expect(plan).not.toMatch(/Filter:.* = ANY \(\$2\)/);
});

test('an external reference finds the one code of the account that has it and is not deleted', async () => {
  const deleted = { reference: 'again', deleted: true };
  const { account, ids } = await newAccount(deleted, deleted, deleted, { reference: 'again' });
  await newAccount({ reference: 'again' }, { reference: 'foreign' });
  const found = await findCodes(pool, account, [rowOf('external_ref', 'again'), rowOf('external_ref', 'foreign')]);
  expect(found).toEqual([{ code: expect.objectContaining({ id: ids[3] }) }, { problem: CODE_PROBLEMS.external_ref }]);
});

import { afterAll, expect, test } from 'vitest';
import { newUuid } from '../../../common/contract/ids.ts';
import { freshDatabase } from '../../../test/harness/database.ts';
import { openDatabase } from '../../db/database.ts';
import { entities } from '../../entities.ts';
import { findCodes } from './find-codes.ts';
import type { Reference } from './read-rows.ts';

const { pool, close } = await openDatabase((await freshDatabase()).url, 2, entities);
afterAll(close);

/** The plan that Postgres uses from the sixth time on that a connection finds codes by references of this kind. */
async function laterPlan(kind: Reference['kind']): Promise<string> {
  const texts: string[] = [];
  const explaining = {
    async query(query: { readonly text: string }) {
      texts.push(query.text);
      return { rows: [] };
    },
  };
  const row = { reference: { kind, text: 'one' }, targetUrl: 'https://example.com', policy: null, problem: undefined };
  await findCodes(explaining, newUuid(), [row]);
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

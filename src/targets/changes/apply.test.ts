import { afterAll, expect, test, vi } from 'vitest';
import { newUuid } from '../../../common/contract/ids.ts';
import { transaction } from '../../../common/postgres/sql.ts';
import { freshDatabase } from '../../../test/harness/database.ts';
import { insertAccount } from '../../../test/harness/insert-account.ts';
import { newShortCode } from '../../codes/create/short-code.ts';
import { openDatabase } from '../../db/database.ts';
import { entities } from '../../entities.ts';
import { applyNext } from './apply.ts';

const { orm, pool, close } = await openDatabase((await freshDatabase()).url, 2, entities);
afterAll(close);

const [BEFORE, AFTER] = ['https://example.com/before', 'https://example.com/after'];
const POLICY = { rules: [{ name: 'all', outcome: { targetUrl: AFTER } }] };

async function newCode(account: string, columns: { policy?: object; version?: number; deleted?: boolean } = {}) {
  const id = newUuid();
  await pool.query(
    `insert into codes (account_id, id, type, short_code, target_url, policy, target_version, deleted_at, created_at, updated_at)
     values ($1, $2, 'dynamic', $3, $4, $5, $6, $7, '2020-01-01', '2100-01-01')`,
    [account, id, newShortCode(), BEFORE, columns.policy, columns.version ?? 1, columns.deleted ? new Date() : null],
  );
  return id;
}

// Such a second job would otherwise wait in the place of another account's work.
test('a job ends if another one applies the change', async () => {
  const account = await insertAccount(pool, { plan: 'enterprise' });
  const change = newUuid();
  await pool.query(
    `insert into target_changes (id, account_id, dry_run, author, note, total, failed) values ($1, $2, false, '', '', 2501, 0)`,
    [change, account],
  );
  const apply = () => applyNext(orm, 'https://signpost.example', change);
  await transaction(pool, async (tx) => {
    await tx.query('select from target_changes where id = $1 for update', [change]);
    expect(await apply()).toBe(false);
  });
  expect(await apply()).toBe(true);
  expect(await apply()).toBe(false);
});

// What happens between the storing of a row and its step: a code is deleted, or gets the target or another version.
test('each row is applied to its code as it is then', async () => {
  const account = await insertAccount(pool, { plan: 'enterprise' });
  const change = newUuid();
  const rows = [
    { code: await newCode(account), url: AFTER, policy: null },
    { code: await newCode(account, { version: 7 }), url: AFTER, policy: null },
    { code: await newCode(account, { deleted: true }), url: AFTER, policy: null },
    { code: await newCode(account), url: BEFORE, policy: null },
    { code: await newCode(account), url: null, policy: POLICY },
    { code: await newCode(account, { policy: POLICY, version: 2 }), url: AFTER, policy: {} },
    { code: await newCode(account, { policy: POLICY, version: 2 }), url: AFTER, policy: null },
  ];
  await pool.query(
    `insert into target_changes (id, account_id, dry_run, author, note, total, failed) values ($1, $2, false, 'Ada', 'why', $3, 0)`,
    [change, account, rows.length],
  );
  for (const [index, { code, url, policy }] of rows.entries()) {
    await pool.query(
      `insert into target_change_rows (account_id, change_id, index, reference_kind, reference, target_url, policy, code_id, version)
       values ($1, $2, $3, 'id', '', $4, $5, $6, 2)`,
      [account, change, index, url, policy, code],
    );
  }
  expect(await applyNext(orm, 'https://signpost.example', change)).toBe(false);

  const { rows: codes } = await pool.query(
    `select c.target_url, c.policy, c.target_version, c.version, r.outcome, r.version as shown, r.reason is null as fine,
       (select json_agg(json_build_array(v.version, v.target_url, v.policy is not null, v.author, extract(year from v.created_at))
                        order by v.version)
        from target_versions v where v.account_id = c.account_id and v.code_id = c.id) as versions
     from target_change_rows r join codes c on c.id = r.code_id where r.change_id = $1 order by r.index`,
    [change],
  );
  const changed = { outcome: null, fine: true, version: '2' };
  const unchanged = { fine: true, version: '1', versions: null };
  const first = [1, BEFORE, false, '', 2020];
  expect(codes).toEqual([
    {
      ...changed,
      target_url: AFTER,
      policy: null,
      target_version: 2,
      shown: 2,
      versions: [first, [2, AFTER, false, 'Ada', 2100]],
    },
    {
      ...changed,
      target_url: AFTER,
      policy: null,
      target_version: 8,
      shown: 8,
      versions: [[8, AFTER, false, 'Ada', 2100]],
    },
    {
      ...unchanged,
      target_url: BEFORE,
      policy: null,
      target_version: 1,
      outcome: 'failed',
      shown: null,
      fine: false,
    },
    { ...unchanged, target_url: BEFORE, policy: null, target_version: 1, outcome: 'unchanged', shown: 1 },
    {
      ...changed,
      target_url: BEFORE,
      policy: POLICY,
      target_version: 2,
      shown: 2,
      versions: [first, [2, BEFORE, true, 'Ada', 2100]],
    },
    {
      ...changed,
      target_url: AFTER,
      policy: null,
      target_version: 3,
      shown: 3,
      versions: [[3, AFTER, false, 'Ada', 2100]],
    },
    {
      ...changed,
      target_url: AFTER,
      policy: POLICY,
      target_version: 3,
      shown: 3,
      versions: [[3, AFTER, true, 'Ada', 2100]],
    },
  ]);
  const { rows: events } = await pool.query(
    `select convert_from(value, 'UTF8')::json -> 'changed' as changed from outbox where key like 'qr\\_%' order by id`,
  );
  expect(events.map((event) => event.changed).sort()).toEqual([
    ['policy'],
    ['target_url'],
    ['target_url'],
    ['target_url'],
    ['target_url', 'policy'],
  ]);
});

// 2,500 codes with the largest policies took 215 MB at once.
test('a step changes all codes at once, but only some whose policies are large', async () => {
  const account = await insertAccount(pool, { plan: 'enterprise' });
  const change = newUuid();
  await pool.query(
    `insert into target_changes (id, account_id, dry_run, author, note, total, failed) values ($1, $2, false, '', '', 5000, 0)`,
    [change, account],
  );
  const large = { rules: Array.from({ length: 20 }, () => ({ outcome: { targetUrl: AFTER + 'x'.repeat(1_400) } })) };
  const rows = [...Array<object>(300).fill(large), ...Array<undefined>(300).fill(undefined)];
  for (const [index, policy] of rows.entries()) {
    const code = await newCode(account, policy ? { policy } : {});
    await pool.query(
      `insert into target_change_rows (account_id, change_id, index, reference_kind, reference, target_url, code_id, version)
       values ($1, $2, $3, 'id', '', $4, $5, 2)`,
      [account, change, policy ? index : 2_200 + index, AFTER, code],
    );
  }
  const client = await pool.connect();
  const query = vi.spyOn(Object.getPrototypeOf(client), 'query');
  client.release();
  const step = () => applyNext(orm, 'https://signpost.example', change);
  expect([await step(), await step()]).toEqual([true, false]);
  const applied = query.mock.calls.flatMap(([what]) => {
    const { name, values } = what as { name?: string; values?: unknown[][] };
    return name === 'target_changes_apply' ? [values?.[2]?.length ?? 0] : [];
  });
  query.mockRestore();
  // A policy has 29 KB.
  expect(applied.slice(0, -1).every((count) => count < 300)).toBe(true);
  expect(applied.at(-1)).toBe(300);
  expect(applied.reduce((sum, count) => sum + count)).toBe(600);
  const { rows: results } = await pool.query(
    `select changed, (select count(*)::int from outbox where key = any(select 'code:' || short_code from codes
       where account_id = $1)) as routes from target_changes where id = $2`,
    [account, change],
  );
  expect(results).toEqual([{ changed: 600, routes: 600 }]);
});

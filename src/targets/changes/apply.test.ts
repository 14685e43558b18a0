import { afterAll, expect, test } from 'vitest';
import { newUuid } from '../../../common/contract/ids.ts';
import { transaction } from '../../../common/postgres/sql.ts';
import { freshDatabase } from '../../../test/harness/database.ts';
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
  const [account, change] = [newUuid(), newUuid()];
  await pool.query(`insert into accounts (id, name, plan) values ($1, 'Test', 'enterprise')`, [account]);
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
  const [account, change] = [newUuid(), newUuid()];
  await pool.query(`insert into accounts (id, name, plan) values ($1, 'Test', 'enterprise')`, [account]);
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

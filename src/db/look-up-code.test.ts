import { create } from '@bufbuild/protobuf';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encodeId, newUuid } from '../../common/contract/ids.ts';
import { run } from '../../common/postgres/sql.ts';
import { GetBatchRequestSchema, RowStatus } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { CodeOrder, CodeState, CodeType, ListCodesRequestSchema } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { TaxonomyService } from '../../proto/gen/signpost/taxonomy/v1/taxonomy_pb.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { getBatch } from '../batches/read.ts';
import { cursors } from '../calls/cursors.ts';
import { eraseAccountCodes } from '../codes/delete/delete-account-codes.ts';
import { listCodes } from '../codes/list/list-codes.ts';
import { labelledCodes } from '../codes/update/relabelled-codes.ts';
import { entities } from '../entities.ts';
import { serviceClient } from '../rpc/service-client.fixture.ts';
import { TAG } from '../taxonomy/label-kinds.ts';
import { taxonomyService } from '../taxonomy/service.ts';
import { openDatabase } from './database.ts';
import { statementsOf } from './statements.fixture.ts';

const PLATFORM = 'https://signpost.example';
/** More than are counted one by one. */
const CODES = 21_000;
/** Codes in a folder, and as many paused ones. */
const FEW = 10;

const database = await openDatabase((await freshDatabase()).url, 2, entities);
afterAll(() => database.close());
const { pool } = database;
const [account, batch, folder, ...tags] = [newUuid(), newUuid(), newUuid(), newUuid(), newUuid(), newUuid()];
const tag = (nth: number) => encodeId('tag', tags[nth] ?? '');

/** Accounts with one code each, which the statistics know, and then one with a batch, which they don't. */
beforeAll(async () => {
  await pool.query(`
    alter table codes set (autovacuum_enabled = false);
    alter table code_tags set (autovacuum_enabled = false);
    alter table batch_rows set (autovacuum_enabled = false);
    insert into accounts (id, name, plan) select gen_random_uuid(), 'One', 'free' from generate_series(1, 60);
    insert into codes (account_id, id, type, short_code, target_url)
      select id, gen_random_uuid(), 'dynamic', left(replace(id::text, '-', ''), 12), 'https://example.com' from accounts;
    insert into tags (id, account_id, name) select gen_random_uuid(), id, 'a' from accounts;
    insert into code_tags (code_id, tag_id) select c.id, t.id from codes c join tags t using (account_id);
    analyze;
    insert into accounts (id, name, plan) values ('${account}', 'Many', 'enterprise');
    insert into code_counts (account_id, listed, live) values ('${account}', ${CODES}, ${CODES});
    insert into tags (id, account_id, name) select id, '${account}', 't' || nth
      from unnest('{${tags.join()}}'::uuid[]) with ordinality as t (id, nth);
    insert into folders (id, account_id, name) values ('${folder}', '${account}', 'few');
    insert into codes (account_id, id, type, short_code, target_url, folder_id, paused)
      select '${account}', gen_random_uuid(), 'dynamic', 'many' || nth, 'https://example.com',
        case when nth <= ${FEW} then '${folder}'::uuid end, nth between ${FEW + 1} and ${2 * FEW}
      from generate_series(1, ${CODES}) nth;
    insert into code_tags (code_id, tag_id)
      select c.id, t.id from codes c join tags t using (account_id) where account_id = '${account}';
    insert into batches (id, account_id, foreground_color, background_color, total, failed, skipped)
      values ('${batch}', '${account}', '#000000', '#ffffff', ${CODES}, 0, 0);
    insert into batch_rows (batch_id, index, target_url, code_id, tags)
      select '${batch}', row_number() over (), target_url, id, '{}' from codes where account_id = '${account}'`);
});

/** The plans of the statements that `work` runs, by name. */
async function plansOf(work: () => Promise<unknown>): Promise<Map<string, string>> {
  const plans = new Map<string, string>();
  for (const { name, text, values } of await statementsOf(work)) {
    if (name === undefined) continue;
    const { rows } = await pool.query<{ 'QUERY PLAN': string }>(`explain (costs off) ${text}`, values);
    plans.set(name, rows.map((row) => row['QUERY PLAN']).join('\n'));
  }
  return plans;
}

/**
 * Such a plan compares each row with all codes or tags of the account: with the 25,000 of a batch that takes minutes.
 */
const COMPARES_ALL = /Join Filter|Materialize/;

async function expectLookUps(work: () => Promise<unknown>, ...names: string[]): Promise<void> {
  const plans = await plansOf(work);
  expect([...plans.keys()]).toEqual(expect.arrayContaining(names));
  // Those compare the few labels that were sought.
  const ofCodes = [...plans].filter(([name]) => !name.startsWith('taxonomy_find_'));
  expect(ofCodes.filter(([, plan]) => COMPARES_ALL.test(plan))).toEqual([]);
}

test.each([RowStatus.UNSPECIFIED, RowStatus.CREATED])('the rows of a new batch, status %i', async (status) => {
  const request = create(GetBatchRequestSchema, { id: encodeId('batch', batch), limit: 500, offset: 20_000, status });
  await expectLookUps(() => getBatch(database, PLATFORM, account, request), `batches_rows_${status}`);
});

test('lists of the codes with some tags', async () => {
  const pages = cursors(Buffer.alloc(32)).byId;
  const list = (request: object) =>
    listCodes(
      { pool, platformUrl: PLATFORM, cursors: pages },
      account,
      create(ListCodesRequestSchema, { tags: ['t1', 't2'], limit: 100, ...request }),
    );
  const { rows } = await pool.query<{ id: string }>('select id from codes where account_id = $1 order by id desc', [
    account,
  ]);
  const newest = rows.map(({ id }) => encodeId('qr', id));
  const idsOf = ({ codes }: { codes: readonly { id: string }[] }) => codes.map(({ id }) => id);
  await expectLookUps(async () => {
    const first = await list({});
    expect([idsOf(first), first.total]).toEqual([newest.slice(0, 100), BigInt(CODES)]);
    const second = await list({ cursor: first.nextCursor });
    expect([idsOf(second), second.total]).toEqual([newest.slice(100, 200), BigInt(CODES - 100)]);
    const oldest = await list({ offset: 4_000, order: CodeOrder.OLDEST });
    expect(idsOf(oldest)).toEqual(newest.toReversed().slice(4_000, 4_100));
    const found = await list({
      search: 'MANY77',
      type: CodeType.DYNAMIC,
      state: CodeState.ACTIVE,
      order: CodeOrder.OLDEST,
    });
    const matches = found.codes.map(({ shortCode }) => shortCode);
    expect([matches.every((code) => code.startsWith('many77')), idsOf(found)]).toEqual([true, idsOf(found).toSorted()]);
    expect(found.total).toBe(111n);
  }, 'codes_count_live_any_any_read_start_none_newest');
});

test('lists of the codes with a tag in a folder or a state', async () => {
  const pages = cursors(Buffer.alloc(32)).byId;
  const list = (request: object) =>
    listCodes({ pool, platformUrl: PLATFORM, cursors: pages }, account, create(ListCodesRequestSchema, request));
  // So that there are more codes without a folder than with a tag.
  await pool.query(
    `insert into codes (account_id, id, type, short_code, target_url)
     select $1, gen_random_uuid(), 'dynamic', 'untagged' || nth, 'https://example.com' from generate_series(1, $2::integer) nth`,
    [account, 2 * FEW],
  );
  await expectLookUps(
    async () => {
      for (const few of [{ folder: 'few' }, { state: CodeState.PAUSED }]) {
        for (const tags of [['t1'], ['t1', 't2']]) {
          const { codes, total, nextCursor } = await list({ ...few, tags, limit: FEW - 1 });
          expect([codes.length, total]).toEqual([FEW - 1, BigInt(FEW)]);
          const last = await list({ ...few, tags, cursor: nextCursor });
          expect([last.codes.length, last.total]).toEqual([1, 1n]);
        }
      }
      const { total } = await list({ folder: 'none', tags: ['t1'] });
      expect(total).toBe(BigInt(CODES - FEW));
    },
    'codes_page_live_any_one_checked_start_none_newest',
    'codes_count_live_any_one_checked_after_none_newest',
    'codes_test_paused_any_any_checked_start_none_newest',
    'codes_count_live_any_none_read_start_none_newest',
  );
});

test('tags by many names, also with a plan from when there were few tags', async () => {
  const names = Array.from({ length: 100 }, (_, nth) => `T${nth}`);
  const plans = await plansOf(async () => {
    for (const find of [TAG.find, TAG.findAndLock]) {
      const found = await run(pool, find, [account, names.map(() => null), names]);
      expect(found.map(({ id }) => id).toSorted()).toEqual(tags.toSorted());
    }
  });
  // A loop would compare each name with each tag.
  expect([...plans.values()].map((plan) => plan.includes('Nested Loop'))).toEqual([false, false]);
});

test('listing folders counts the codes of all in one scan', async () => {
  const service = taxonomyService({ database, cursors: cursors(Buffer.alloc(32)).byName, codes: labelledCodes });
  const client = serviceClient(TaxonomyService, service, { id: account });
  const plans = await plansOf(() => client.listFolders({}));
  expect(plans.get('taxonomy_list_folders')).toMatch('Full Join');
  expect(plans.get('taxonomy_list_folders')).not.toMatch('SubPlan');
});

test('listing, renaming, merging and deleting tags', async () => {
  const service = taxonomyService({ database, cursors: cursors(Buffer.alloc(32)).byName, codes: labelledCodes });
  const client = serviceClient(TaxonomyService, service, { id: account });
  const { rows } = await pool.query<{ id: string }>(`select id from accounts where name = 'One' limit 1`);
  const other = serviceClient(TaxonomyService, service, { id: rows[0]?.id ?? '' });
  await expectLookUps(
    async () => {
      const { tags } = await client.listTags({});
      expect(tags.map(({ codeCount }) => codeCount)).toEqual([BigInt(CODES), BigInt(CODES), BigInt(CODES)]);
      expect((await other.listTags({})).tags).toMatchObject([{ name: 'a', codeCount: 1n }]);
      await client.renameTag({ id: tag(0), name: 'renamed' });
      await client.mergeTags({ id: tag(0), into: tag(1) });
      await client.deleteTag({ id: tag(2) });
    },
    ...['taxonomy_list_tags', 'taxonomy_list_large_tags', 'taxonomy_one_tag'],
    ...['codes_tags_changed', 'taxonomy_delete_duplicates'],
  );
});

test('erasing the codes of a closed account', async () => {
  await pool.query('update codes set deleted_at = now() where account_id = $1', [account]);
  await expectLookUps(() => eraseAccountCodes(pool, account), 'codes_erase');
});

import { randomBytes } from 'node:crypto';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newUuid } from '../../../common/contract/ids.ts';
import { CodeOrder, CodeState, ListCodesRequestSchema } from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { freshDatabase } from '../../../test/harness/database.ts';
import { insertAccount } from '../../../test/harness/insert-account.ts';
import { cursors } from '../../calls/cursors.ts';
import { type Database, openDatabase } from '../../db/database.ts';
import { entities } from '../../entities.ts';
import { listCodes } from './list-codes.ts';
import { MAX_TESTED } from './tested-codes.ts';

const accountId = newUuid();
const options = { platformUrl: 'http://localhost:8080', cursors: cursors(randomBytes(32)).byId };
/** So many codes that one call cannot test them all. */
const CODES = MAX_TESTED + 50_000;
let database: Database;

beforeAll(async () => {
  database = await openDatabase((await freshDatabase()).url, 4, entities);
  const { pool } = database;
  const otherId = newUuid();
  for (const id of [accountId, otherId]) await insertAccount(pool, { id, plan: 'enterprise' });
  // Before and after all codes that are listed, a code of another account and a deleted one.
  const addUnlisted = (name: string) =>
    pool.query(
      `insert into codes (id, account_id, type, short_code, target_url, deleted_at)
       select uuidv7(), account_id, 'dynamic', $1 || account_id, 'https://example.com', deleted_at
       from (values ($2::uuid, null), ($3, now())) as unlisted (account_id, deleted_at)`,
      [name, otherId, accountId],
    );
  await addUnlisted('oldest');
  await pool.query(
    `insert into codes (id, account_id, type, short_code, target_url, name, paused)
     select uuidv7(), $1::uuid, 'dynamic', 'code' || n, 'https://example.com',
       case when n in (1, 2, 3, $2) then 'Rare ' || n end, n = 5
     from generate_series(1, $2::integer) n`,
    [accountId, CODES],
  );
  await addUnlisted('newest');
  await pool.query('insert into code_counts (account_id, live, listed) values ($1, $2, $2)', [accountId, CODES]);
  await pool.query('vacuum analyze codes');
});
afterAll(() => database.close());

const list = (request: MessageInitShape<typeof ListCodesRequestSchema>) =>
  listCodes({ pool: database.pool, ...options }, accountId, create(ListCodesRequestSchema, request));

test('a search tests a limited number of codes, and its cursor continues it until all are tested', async () => {
  const found: (string | undefined)[] = [];
  let page = await list({ search: 'rare', limit: 2 });
  expect(page).toMatchObject({ total: 1n, totalIsLowerBound: true });
  found.push(...page.codes.map(({ name }) => name));
  page = await list({ search: 'rare', limit: 2, cursor: page.nextCursor ?? '' });
  expect(page).toMatchObject({ total: 3n, totalIsLowerBound: false });
  found.push(...page.codes.map(({ name }) => name));
  page = await list({ search: 'rare', limit: 2, cursor: page.nextCursor ?? '' });
  found.push(...page.codes.map(({ name }) => name));
  expect(page.nextCursor).toBeUndefined();
  expect(found).toEqual([`Rare ${CODES}`, 'Rare 3', 'Rare 2', 'Rare 1']);
});

test('a page that is full continues after its last code, not after the last one tested', async () => {
  const first = await list({ search: 'example', limit: 100 });
  expect(first).toMatchObject({ total: BigInt(MAX_TESTED), totalIsLowerBound: true });
  const second = await list({ search: 'example', limit: 1, cursor: first.nextCursor ?? '' });
  expect(second.codes.map(({ shortCode }) => shortCode)).toEqual([`code${CODES - 100}`]);
});

test('few paused codes among many are found by one call', async () => {
  const { codes, totalIsLowerBound, nextCursor } = await list({ state: CodeState.PAUSED });
  expect(codes.map(({ shortCode }) => shortCode)).toEqual(['code5']);
  expect([totalIsLowerBound, nextCursor]).toEqual([false, undefined]);
});

test('any offset of the whole list returns the codes there', async () => {
  for (const offset of [1, CODES / 2, CODES - 2]) {
    const { codes, total } = await list({ offset, limit: 2 });
    expect(codes.map(({ shortCode }) => shortCode)).toEqual([`code${CODES - offset}`, `code${CODES - offset - 1}`]);
    expect(total).toBe(BigInt(CODES));
  }
});

test('the total after a cursor is that of the codes from there on, in both halves of the list and orders', async () => {
  for (const order of [CodeOrder.NEWEST, CodeOrder.OLDEST]) {
    for (const offset of [0, CODES / 2 - 2, CODES / 2 - 1, CODES / 2, CODES - 2]) {
      const { nextCursor = '' } = await list({ order, offset, limit: 1 });
      expect(await list({ order, cursor: nextCursor })).toMatchObject({ total: BigInt(CODES - offset - 1) });
    }
  }
});

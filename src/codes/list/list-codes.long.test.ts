import { randomBytes } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encodeId, newUuid } from '../../../common/contract/ids.ts';
import { transaction } from '../../../common/postgres/sql.ts';
import { ListCodesRequestSchema } from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { freshDatabase } from '../../../test/harness/database.ts';
import { insertAccount } from '../../../test/harness/insert-account.ts';
import { cursors } from '../../calls/cursors.ts';
import { type Database, openDatabase } from '../../db/database.ts';
import { entities } from '../../entities.ts';
import { deleteCode } from '../delete/delete-code.ts';
import { listCodes, pageStatement } from './list-codes.ts';

const CODES = 100_000;
const accountId = newUuid();
const otherId = newUuid();
const platformUrl = 'http://localhost:8080';
const issued = cursors(randomBytes(32)).byId;
let database: Database;

beforeAll(async () => {
  database = await openDatabase((await freshDatabase()).url, 8, entities);
  const { pool } = database;
  for (const [id, count] of [
    [accountId, CODES],
    [otherId, 10_000],
  ] as const) {
    await insertAccount(pool, { id, plan: 'enterprise' });
    await insertCodes(count, id);
  }
  await pool.query('insert into code_counts (account_id, live, listed) values ($1, $2, $2)', [accountId, CODES]);
  await pool.query('vacuum analyze codes');
});
afterAll(() => database.close());

async function insertCodes(count: number, account = accountId): Promise<void> {
  await database.pool.query(
    `insert into codes (id, account_id, type, short_code, target_url)
     select uuidv7(), $1::uuid, 'dynamic', substr(md5(random()::text), 1, 16), 'https://example.com'
     from generate_series(1, $2::integer)`,
    [account, count],
  );
}

const list = (request: { cursor?: string; limit?: number }) =>
  listCodes({ pool: database.pool, platformUrl, cursors: issued }, accountId, create(ListCodesRequestSchema, request));

test('paging through 100,000 codes during creates and deletes returns each code that exists throughout exactly once', async () => {
  const { rows } = await database.pool.query<{ id: string }>(
    'select id from codes where account_id = $1 order by id desc',
    [accountId],
  );
  const ids = rows.map(({ id }) => encodeId('qr', id));
  const throughout = new Set(ids);
  const seen: string[] = [];
  let cursor: string | undefined;
  for (let page = 0; ; page++) {
    const { codes, nextCursor } = await list({ limit: 100, ...(cursor === undefined ? {} : { cursor }) });
    seen.push(...codes.map(({ id }) => id));
    if (nextCursor === undefined) break;
    cursor = nextCursor;
    if (page % 20 !== 0) continue;
    // Deletes a code on the page just read, its last one and one on a later page, and creates others.
    await insertCodes(5);
    for (const at of [page * 100 + 3, page * 100 + 99, page * 100 + 250]) {
      const deleted = ids[at];
      if (deleted === undefined || !throughout.delete(deleted)) continue;
      await transaction(database.pool, (tx) => deleteCode(tx, platformUrl, accountId, deleted));
    }
  }
  expect(new Set(seen).size).toBe(seen.length);
  const returned = new Set(seen);
  expect([...throughout].filter((id) => !returned.has(id))).toEqual([]);
  expect(seen).toEqual(seen.toSorted().reverse());
}, 180_000);

test('page 1 and page 1,000 read the same number of rows, through the index, and sort nothing', async () => {
  await database.pool.query('vacuum analyze codes');
  const { rows } = await database.pool.query<{ id: string }>(
    'select id from codes where account_id = $1 and deleted_at is null order by id desc offset 99000 limit 1',
    [accountId],
  );
  const plans: string[] = [];
  for (const after of [null, rows[0]?.id ?? null]) {
    const { text } = pageStatement(
      {
        state: 'live',
        type: 'any',
        folder: 'any',
        tags: 'any',
        cursor: after !== null,
        search: 'none',
        order: 'newest',
      },
      false,
    );
    const explained = await database.pool.query<{ 'QUERY PLAN': string }>(
      `explain (analyze, buffers, costs off, timing off, summary off) ${text}`,
      [accountId, null, null, after, null, 100],
    );
    // The subplans read the labels of the page's rows, and the initial plan the account's counter.
    const [page = ''] = explained.rows
      .map((row) => row['QUERY PLAN'])
      .join('\n')
      .split('SubPlan');
    plans.push(page.replace(/ {2}InitPlan.*?\n(?= {2}->)/s, ''));
  }
  for (const plan of plans) {
    expect(plan).toMatch(/Index Scan Backward using codes_listed on codes c \(actual rows=101/);
    expect(plan).not.toMatch(/Sort|Filter|Seq Scan/);
  }
});

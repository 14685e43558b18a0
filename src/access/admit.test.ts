import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { newUuid } from '../../common/contract/ids.ts';
import { Feature } from '../../proto/gen/signpost/access/v1/requirements_pb.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { replaceKey } from '../accounts/key.ts';
import { type Database, openDatabase } from '../db/database.ts';
import { entities } from '../entities.ts';
import { admit, type Judged, judgeUnmetered } from './admit.ts';
import { hashApiKey } from './api-key.ts';
import { openMeters } from './usage.ts';

let databases: Database[];
let account: string;
let key: string;

// Two pools, as two cores have them.
beforeAll(async () => {
  const { url } = await freshDatabase();
  databases = await Promise.all([openDatabase(url, 20, entities), openDatabase(url, 20, entities)]);
});
afterAll(() => Promise.all(databases.map((database) => database.close())));
beforeEach(() => newAccount('business'));

const databaseOf = (core: number) => {
  const database = databases[core];
  if (!database) throw new Error(`no core ${core}`);
  return database;
};
const pool = (core = 0) => databaseOf(core).pool;
const rotated = () => replaceKey(databaseOf(0).orm.em.fork(), account);

async function newAccount(plan: string, monthlyQuota: number | null = null): Promise<void> {
  account = newUuid();
  const values = [account, plan, monthlyQuota];
  await pool().query(`insert into accounts (id, name, plan, monthly_quota) values ($1, 'x', $2, $3)`, values);
  await openMeters(pool(), account);
  key = await rotated();
}

function request(core = 0, features: Feature[] = [Feature.API]): Promise<Judged | undefined> {
  return admit(pool(core), hashApiKey(key), features);
}

function requests(count: number): Promise<(Judged | undefined)[]> {
  return Promise.all(Array.from({ length: count }, (_, nth) => request(nth % 2)));
}

const reasonOf = (judged: Judged | undefined) => judged?.refusal && readFailure(judged.refusal).reason;

test('of 150 requests at once over two cores exactly 120 are admitted', async () => {
  const judged = await requests(150);
  expect(judged.filter((each) => each && !each.refusal)).toHaveLength(120);
  expect(judged.filter((each) => reasonOf(each) === 'BURST_LIMIT')).toHaveLength(30);
});

test('a refused request costs nothing, and says when to come back', async () => {
  const judged = await requests(125);
  const refused = judged.find((each) => each?.refusal);
  expect(Math.max(...judged.map((each) => each?.rate.used ?? 0))).toBe(120);
  const { details } = readFailure(refused?.refusal);
  expect(Number(details.retry_after)).toBeGreaterThanOrEqual(1);
  expect(Number(details.retry_after)).toBeLessThanOrEqual(60);
});

test('requests that are 60 seconds old make room one by one', async () => {
  await requests(120);
  // As if the seven oldest had been made a minute earlier.
  await pool().query(
    `update meters set admissions = (select array_agg(case when nth <= 7 then at - 60000 else at end order by nth)
       from unnest(admissions) with ordinality as a (at, nth)) where account_id = $1`,
    [account],
  );
  expect((await requests(20)).filter((each) => each && !each.refusal)).toHaveLength(7);
});

test('the quota is exact under concurrency, and its refusal names no time to retry', async () => {
  await newAccount('business', 50);
  const judged = await requests(80);
  expect(judged.filter((each) => each && !each.refusal)).toHaveLength(50);
  const refused = judged.find((each) => each?.refusal);
  expect(reasonOf(refused)).toBe('QUOTA_EXHAUSTED');
  expect(readFailure(refused?.refusal).details).toEqual({});
});

test('the quota begins anew with the UTC month', async () => {
  await newAccount('business', 1);
  await request();
  expect(reasonOf(await request())).toBe('QUOTA_EXHAUSTED');
  await pool().query(`update meters set month = month - interval '1 month' where account_id = $1`, [account]);
  const { rate, refusal } = (await request()) ?? {};
  expect(refusal).toBeUndefined();
  expect(rate?.used).toBe(1);
  const now = new Date();
  expect(rate?.reset).toBe(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1) / 1_000);
});

test('a plan without API access is refused before anything is counted', async () => {
  await newAccount('free');
  expect(reasonOf(await request())).toBe('BUSINESS_PLAN_REQUIRED');
  expect((await request(0, []))?.rate.used).toBe(1);
});

test('a key that was replaced is nobody’s at once, and the new one has a full window', async () => {
  await requests(120);
  const old = key;
  key = await rotated();
  expect(await admit(pool(1), hashApiKey(old), [])).toBeUndefined();
  expect((await requests(120)).filter((each) => each?.refusal)).toHaveLength(0);
});

test('the key of a closed account is nobody’s', async () => {
  await pool().query('update accounts set closed_at = now() where id = $1', [account]);
  expect(await request()).toBeUndefined();
});

test('a judgement without metering costs nothing, and tells what the next request would be met with', async () => {
  const judge = (features = [Feature.API]) => judgeUnmetered(pool(), hashApiKey(key), features);
  for (let nth = 0; nth < 130; nth++) expect((await judge())?.refusal).toBeUndefined();
  expect((await request())?.rate.used).toBe(1);
  await requests(119);
  expect([reasonOf(await judge()), reasonOf(await request())]).toEqual(['BURST_LIMIT', 'BURST_LIMIT']);
  await newAccount('business', 1);
  await request();
  expect([reasonOf(await judge()), reasonOf(await request())]).toEqual(['QUOTA_EXHAUSTED', 'QUOTA_EXHAUSTED']);
  await newAccount('free');
  expect([reasonOf(await judge()), reasonOf(await judge([]))]).toEqual(['BUSINESS_PLAN_REQUIRED', undefined]);
  expect(await judgeUnmetered(pool(), hashApiKey(`${key}x`), [])).toBeUndefined();
});

test.each([
  ['fewer places', 'admissions[1:60]', 61],
  ['more places', 'admissions || admissions', 200],
  ['no places', "'{}'::bigint[]", 1],
])('a meter with %s, made for another limit, still admits exactly 120', async (_, places, turn) => {
  await pool().query(`update meters set admissions = ${places}, turn = $2 where account_id = $1`, [account, turn]);
  const judged = await requests(150);
  expect(judged.filter((each) => each && !each.refusal)).toHaveLength(120);
  expect(judged.filter((each) => reasonOf(each) === 'BURST_LIMIT')).toHaveLength(30);
});

test('a request whose meter can neither be written nor refuses it is told to try again', async () => {
  await pool().query(`create function keep() returns trigger language plpgsql as 'begin return null; end'`);
  await pool().query('create trigger keep before update on meters for each row execute function keep()');
  try {
    expect(readFailure(await request().catch((error: unknown) => error)).reason).toBe('UNAVAILABLE');
  } finally {
    await pool().query('drop trigger keep on meters; drop function keep');
  }
});

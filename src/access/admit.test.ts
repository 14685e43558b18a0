import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { newUuid } from '../../common/contract/ids.ts';
import { Feature } from '../../proto/gen/signpost/access/v1/requirements_pb.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { replaceKey } from '../accounts/key.ts';
import { type Database, openDatabase } from '../db/database.ts';
import { entities } from '../entities.ts';
import { type Admission, admit, checkUnmetered } from './admit.ts';
import { hashApiKey } from './api-key.ts';
import { openMeters } from './usage.ts';

let databases: Database[];
let account: string;
let key: string;

// One pool per simulated core.
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

function request(core = 0, features: Feature[] = [Feature.API]): Promise<Admission | undefined> {
  return admit(pool(core), hashApiKey(key), features);
}

function requests(count: number): Promise<(Admission | undefined)[]> {
  return Promise.all(Array.from({ length: count }, (_, nth) => request(nth % 2)));
}

const reasonOf = (admission: Admission | undefined) => admission?.rejection && readFailure(admission.rejection).reason;

test('of 150 concurrent requests over two cores exactly 120 are admitted', async () => {
  const admission = await requests(150);
  expect(admission.filter((each) => each && !each.rejection)).toHaveLength(120);
  expect(admission.filter((each) => reasonOf(each) === 'BURST_LIMIT')).toHaveLength(30);
});

test('a rejected request costs nothing and says when to retry', async () => {
  const admission = await requests(125);
  const rejected = admission.find((each) => each?.rejection);
  expect(Math.max(...admission.map((each) => each?.rate.used ?? 0))).toBe(120);
  const { details } = readFailure(rejected?.rejection);
  expect(Number(details.retry_after)).toBeGreaterThanOrEqual(1);
  expect(Number(details.retry_after)).toBeLessThanOrEqual(60);
});

test('requests leave the window one by one after 60 seconds', async () => {
  await requests(120);
  // As if the seven oldest had been made a minute earlier.
  await pool().query(
    `update meters set admissions = (select array_agg(case when position <= 7 then at - 60000 else at end order by position)
       from unnest(admissions) with ordinality as a (at, position)) where account_id = $1`,
    [account],
  );
  expect((await requests(20)).filter((each) => each && !each.rejection)).toHaveLength(7);
});

test('the quota is exact under concurrency, and its error has no time to retry', async () => {
  await newAccount('business', 50);
  const admission = await requests(80);
  expect(admission.filter((each) => each && !each.rejection)).toHaveLength(50);
  const rejected = admission.find((each) => each?.rejection);
  expect(reasonOf(rejected)).toBe('QUOTA_EXHAUSTED');
  expect(readFailure(rejected?.rejection).details).toEqual({});
});

test('the quota is reset at the start of the UTC month', async () => {
  await newAccount('business', 1);
  await request();
  expect(reasonOf(await request())).toBe('QUOTA_EXHAUSTED');
  await pool().query(`update meters set month = month - interval '1 month' where account_id = $1`, [account]);
  const { rate, rejection } = (await request()) ?? {};
  expect(rejection).toBeUndefined();
  expect(rate?.used).toBe(1);
  const now = new Date();
  expect(rate?.reset).toBe(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1) / 1_000);
});

test('a plan without API access is rejected before anything is counted', async () => {
  await newAccount('free');
  expect(reasonOf(await request())).toBe('BUSINESS_PLAN_REQUIRED');
  expect((await request(0, []))?.rate.used).toBe(1);
});

test('a replaced key is invalid at once, and the new key has the full burst', async () => {
  await requests(120);
  const old = key;
  key = await rotated();
  expect(await admit(pool(1), hashApiKey(old), [])).toBeUndefined();
  expect((await requests(120)).filter((each) => each?.rejection)).toHaveLength(0);
});

test('the key of a closed account is invalid', async () => {
  await pool().query('update accounts set closed_at = now() where id = $1', [account]);
  expect(await request()).toBeUndefined();
});

test('a check without metering costs nothing and returns what the next request would get', async () => {
  const check = (features = [Feature.API]) => checkUnmetered(pool(), hashApiKey(key), features);
  for (let nth = 0; nth < 130; nth++) expect((await check())?.rejection).toBeUndefined();
  expect((await request())?.rate.used).toBe(1);
  await requests(119);
  expect([reasonOf(await check()), reasonOf(await request())]).toEqual(['BURST_LIMIT', 'BURST_LIMIT']);
  await newAccount('business', 1);
  await request();
  expect([reasonOf(await check()), reasonOf(await request())]).toEqual(['QUOTA_EXHAUSTED', 'QUOTA_EXHAUSTED']);
  await newAccount('free');
  expect([reasonOf(await check()), reasonOf(await check([]))]).toEqual(['BUSINESS_PLAN_REQUIRED', undefined]);
  expect(await checkUnmetered(pool(), hashApiKey(`${key}x`), [])).toBeUndefined();
});

test.each([
  ['fewer entries', 'admissions[1:60]', 61],
  ['more entries', 'admissions || admissions', 200],
  ['no entries', "'{}'::bigint[]", 1],
])('a meter with %s, created for another limit, still admits exactly 120', async (_, entries, turn) => {
  await pool().query(`update meters set admissions = ${entries}, turn = $2 where account_id = $1`, [account, turn]);
  const admission = await requests(150);
  expect(admission.filter((each) => each && !each.rejection)).toHaveLength(120);
  expect(admission.filter((each) => reasonOf(each) === 'BURST_LIMIT')).toHaveLength(30);
});

test('a request whose meter can neither be updated nor rejects it gets a retryable error', async () => {
  await pool().query(`create function skip() returns trigger language plpgsql as 'begin return null; end'`);
  await pool().query('create trigger skip before update on meters for each row execute function skip()');
  try {
    expect(readFailure(await request().catch((error: unknown) => error)).reason).toBe('UNAVAILABLE');
  } finally {
    await pool().query('drop trigger skip on meters; drop function skip');
  }
});

import { Pool } from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { newUuid } from '../../common/contract/ids.ts';
import { Feature } from '../../proto/gen/signpost/access/v1/requirements_pb.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { replaceKey } from '../accounts/key.ts';
import { type Database, openDatabase } from '../db/database.ts';
import { entities } from '../entities.ts';
import { type Admission, admit, checkUnmetered } from './admit.ts';
import { admitInGroups } from './admit-in-groups.ts';
import { hashApiKey } from './api-key.ts';
import { openMeters } from './usage.ts';

type Admit = (hash: Buffer, features: Feature[], commitBy?: number) => Promise<Admission | undefined>;

let url: string;
let databases: Database[];
let account: string;
let key: string;
/** How calls are admitted, by each core. */
let admits: Admit[];

// One pool per simulated core.
beforeAll(async () => {
  ({ url } = await freshDatabase());
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
  return admitAt(core, key, features);
}

async function admitAt(core: number, ofKey: string, features: Feature[], commitBy?: number) {
  return admits[core]?.(hashApiKey(ofKey), features, commitBy);
}

function requests(count: number): Promise<(Admission | undefined)[]> {
  return Promise.all(Array.from({ length: count }, (_, nth) => request(nth % 2)));
}

const reasonOf = (admission: Admission | undefined) => admission?.rejection && readFailure(admission.rejection).reason;

const WAYS: Record<string, (on: Pool) => Admit> = {
  'one statement a call': (on) => (hash, features, commitBy) => admit(on, hash, features, commitBy),
  'one statement for several calls': (on) => {
    const admitKnown = admitInGroups(on);
    return (hash, features, commitBy) => admitKnown(hash, features, commitBy);
  },
};

describe.each(Object.entries(WAYS))('with %s', (_, way) => {
  beforeAll(() => {
    admits = [way(pool(0)), way(pool(1))];
  });

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

  test('a call that began before the end of a month and waited until the next one keeps the count of that month', async () => {
    await newAccount('business', 50);
    await pool().query(`update meters set month = '2027-02-01', used = 40 where account_id = $1`, [account]);
    // Its transaction began in January, and Postgres's clock shows February.
    await pool().query(
      `create schema if not exists clock;
       create or replace function clock.now() returns timestamptz return timestamptz '2027-01-31 23:59:59Z';
       create or replace function clock.clock_timestamp() returns timestamptz return timestamptz '2027-02-01 00:00:01Z'`,
    );
    const late = new Pool({ connectionString: url, options: '-c search_path=clock,pg_catalog,public' });
    try {
      expect((await way(late)(hashApiKey(key), []))?.rate).toMatchObject({
        used: 41,
        reset: Date.UTC(2027, 2) / 1_000,
      });
    } finally {
      await late.end();
    }
  });

  test('a plan without API access is rejected before anything is counted', async () => {
    await newAccount('free');
    expect(reasonOf(await request())).toBe('BUSINESS_PLAN_REQUIRED');
    expect((await request(0, []))?.rate.used).toBe(1);
  });

  test.each([
    ['api', Feature.API, 'BUSINESS_PLAN_REQUIRED'],
    ['bulk', Feature.BULK, 'FEATURE_NOT_IN_PLAN'],
    ['images', Feature.IMAGES, 'FEATURE_NOT_IN_PLAN'],
  ])('an account without the feature `%s` may use the others', async (name, feature, reason) => {
    await pool().query(`update accounts set feature_${name} = false where id = $1`, [account]);
    const others = [Feature.API, Feature.BULK, Feature.IMAGES].filter((each) => each !== feature);
    expect(reasonOf(await request(0, [feature]))).toBe(reason);
    expect((await request(0, others))?.rate.used).toBe(1);
  });

  test('a replaced key is invalid at once, and the new key has the full burst', async () => {
    await requests(120);
    const old = key;
    key = await rotated();
    expect(await admitAt(1, old, [])).toBeUndefined();
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

  test('calls of many keys at once over two cores are each admitted as often as their account may', async () => {
    const tenants: { readonly key: string; readonly quota: number }[] = [];
    for (const quota of [5, 17, 30, 40, 60, 1_000]) {
      await newAccount('business', quota);
      tenants.push({ key, quota });
    }
    const calls = Array.from({ length: 50 * tenants.length }, async (_, nth) => {
      const tenant = nth % tenants.length;
      return { tenant, admission: await admitAt(nth % 2, tenants[tenant]?.key ?? '', [Feature.API]) };
    });
    const done = await Promise.all(calls);
    for (const [nth, { quota }] of tenants.entries()) {
      const own = done.filter(({ tenant }) => tenant === nth).map(({ admission }) => admission);
      const admitted = own.filter((each) => each && !each.rejection);
      const count = Math.min(quota, 50);
      expect(new Set(admitted.map((each) => each?.rate.used))).toEqual(
        new Set(Array.from({ length: count }, (_, used) => used + 1)),
      );
      expect(own.filter((each) => reasonOf(each) === 'QUOTA_EXHAUSTED')).toHaveLength(50 - count);
    }
  });

  test('a call whose time to commit has passed is rejected and not metered, and no other one', async () => {
    const late = key;
    await newAccount('business');
    const [one, other] = await Promise.all([
      admitAt(0, late, [Feature.API], Date.now() - 60_000),
      admitAt(0, key, [Feature.API], Date.now() + 60_000),
    ]);
    expect([reasonOf(one), reasonOf(other)]).toEqual(['TOO_LATE', undefined]);
    expect([one?.rate.used, other?.rate.used]).toEqual([0, 1]);
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
});

test('a group waits for no meter that another transaction holds, and admits the call of that key afterwards', async () => {
  const admitKnown = admitInGroups(pool());
  const client = await pool(1).connect();
  try {
    await client.query('begin');
    await client.query('select from meters where account_id = $1 for update', [account]);
    const keys = [key];
    for (let others = 0; others < 2; others++) {
      await newAccount('business');
      keys.unshift(key);
    }
    // All three are one group.
    const [first, beside, skipped] = keys.map((each) => admitKnown(hashApiKey(each), [], undefined));
    expect((await first)?.rate.used).toBe(1);
    expect((await beside)?.rate.used).toBe(1);
    await client.query('commit');
    expect((await skipped)?.rate.used).toBe(1);
  } finally {
    client.release();
  }
});

test('an unknown key is invalid in a group of valid ones', async () => {
  const admitKnown = admitInGroups(pool());
  const calls = [key, `${key}x`, `${key}y`].map((each) => admitKnown(hashApiKey(each), [], undefined));
  expect((await Promise.all(calls)).map((each) => each?.rate.used)).toEqual([1, undefined, undefined]);
});

test('a broken connection fails the calls of its group alone', async () => {
  const admitKnown = admitInGroups(pool());
  const other = key;
  await newAccount('business');
  const client = await pool(1).connect();
  try {
    // Statements wait for the table, not for a row.
    await client.query('begin; lock table api_keys');
    const lost = admitKnown(hashApiKey(other), [], undefined);
    lost.catch(() => undefined);
    const waiting = `select pid from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()
      order by query_start limit 1`;
    await expect.poll(async () => (await client.query(waiting)).rowCount).toBe(1);
    const later = admitKnown(hashApiKey(key), [], undefined);
    await client.query(`select pg_terminate_backend(pid) from (${waiting}) as one`);
    await expect(lost).rejects.toThrow();
    await client.query('commit');
    expect((await later)?.rate.used).toBe(1);
  } finally {
    client.release();
  }
});

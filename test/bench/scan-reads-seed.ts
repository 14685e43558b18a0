import type { Pool } from 'pg';
import { decodeId, newUuid } from '../../common/contract/ids.ts';
import { DAY_MS } from '../../common/runtime/durations.ts';
import { ROLL_UP } from '../../src/db/migrations/0016-scan-rollups.ts';
import { DIMENSIONS } from '../../src/scans/dimensions.ts';
import { ensureMonths, monthOf } from '../../src/scans/partitions.ts';
import type { Platform } from './platform.ts';

const DAYS = 30;

export interface SeededAccount {
  /** UUID. */
  readonly id: string;
  readonly key: string;
  /** UUIDs, newest first, as a page lists them. */
  readonly codes: readonly string[];
}

/** Creates an account with this many codes. */
export async function seedAccount(platform: Platform, pool: Pool, codes: number): Promise<SeededAccount> {
  const { accountId, apiKey } = await platform.newAccount();
  const id = decodeId('acct', accountId) ?? '';
  const ids = Array.from({ length: codes }, newUuid);
  await pool.query(
    `insert into codes (id, account_id, type, short_code, target_url, name)
     select id, $1::uuid, 'dynamic', substr(md5(id::text), 1, 14), 'https://example.com/' || n, 'Code ' || n
     from unnest($2::uuid[]) with ordinality as t (id, n)`,
    [id, ids],
  );
  await pool.query('update code_counts set listed = $2, live = $2 where account_id = $1', [id, codes]);
  return { id, key: apiKey, codes: ids.reverse() };
}

/** The maximum numbers of distinct values; the first ones are far more frequent than the last. */
export interface Tails {
  readonly countries: number;
  readonly referrers: number;
}

/**
 * Inserts scans of the codes in turn, in the order of time, each of a different visitor. Nine in ten have no referrer.
 * By default tails are long: the more a code is scanned, the more distinct values it has.
 */
export async function seedScans(
  pool: Pool,
  account: SeededAccount,
  codes: readonly string[],
  scans: number,
  { countries, referrers }: Tails = { countries: 50, referrers: 100 },
): Promise<void> {
  const now = Date.now();
  await ensureMonths(pool, [...new Set(Array.from({ length: DAYS }, (_, day) => monthOf(now - day * DAY_MS)))]);
  await pool.query(
    `insert into scans (id, scanned_at, account_id, code_id, kind, rules, country, device, operating_system, browser,
                        referrer, visitor)
     select uuidv7(at - now()), at, $1, ($2::uuid[])[1 + n % $4], 'person', 1,
            'C' || floor($5::integer * random() ^ 3),
            (array['mobile','mobile','mobile','desktop','tablet'])[1 + n * 3 % 5],
            (array['iOS','Android','Windows','macOS'])[1 + n % 4],
            (array['Safari','Chrome','Firefox','Samsung Internet for Android'])[1 + n * 5 % 4],
            case when random() < 0.9 then 'direct' else 'r' || floor($6::integer * random() ^ 3) || '.example' end,
            n::bigint * 7919
     from generate_series(0, $3::integer - 1) n,
          lateral (select now() - (1 - n::float8 / $3) * interval '29 days' as at) times`,
    [account.id, codes, scans, codes.length, countries, referrers],
  );
}

/**
 * Fills every counter from the scans, day by day, as in operation. Returns the time that those of weeks and accounts
 * take, in ms.
 */
export async function seedCounters(pool: Pool): Promise<number> {
  await noteChanges(pool, false);
  const day = `(scanned_at at time zone 'UTC')::date`;
  const statements = [
    `insert into scan_days select code_id, ${day}, account_id, count(*), count(*) from scans group by 1, 2, 3`,
    `insert into scan_hours select code_id, date_trunc('hour', scanned_at), account_id, count(*), count(*)
     from scans group by 1, 2, 3`,
    ...DIMENSIONS.map(
      (dimension) => `insert into scan_values select code_id, ${day}, '${dimension}', ${dimension}, account_id, count(*)
                      from scans group by 1, 2, 4, 5 order by 2, 1`,
    ),
    'insert into scan_totals select code_id, account_id, count(*) from scans group by 1, 2',
  ];
  for (const statement of statements) await pool.query(statement);
  const start = performance.now();
  await pool.query(ROLL_UP);
  const ms = performance.now() - start;
  await noteChanges(pool, true);
  await pool.query('vacuum analyze');
  return ms;
}

/**
 * The counters of an account that reports on its codes read: each is scanned on every one of `days`, the first ones
 * most, and each day of the account has some 700 different values. Values of single codes are not written.
 */
export async function seedAccountCounters(pool: Pool, { id, codes }: SeededAccount, days: number): Promise<void> {
  await noteChanges(pool, false);
  await pool.query(
    `insert into scan_days (code_id, day, account_id, scans, unique_scans)
     select code_id, (now() at time zone 'UTC')::date - ago, $1, 1 + (20000 / n * random())::integer, 1
     from generate_series(0, $3::integer - 1) ago, unnest($2::uuid[]) with ordinality as code (code_id, n)`,
    [id, codes, days],
  );
  await pool.query(
    `insert into scan_totals select code_id, $1, sum(scans) from scan_days where account_id = $1 group by 1`,
    [id],
  );
  await pool.query(
    `insert into scan_rollups (subject_id, days, start, account_id, scans, unique_scans, names, counts)
     select $1, 1, day, $1, scans, unique_scans, names, counts
     from (
       select day, sum(scans) as scans, sum(unique_scans) as unique_scans from scan_days where account_id = $1 group by 1
     ) d cross join lateral (
       select array_agg(name) as names, array_agg(ceil(random() * 1000 / n)::bigint) as counts
       from (
         select 'c' || n as name, n from generate_series(1, 200) n
         union all select 'd' || n, n from generate_series(1, 5) n
         union all select 'o' || n, n from generate_series(1, 10) n
         union all select 'b' || n, n from generate_series(1, 20) n
         -- More hosts on all days than on one.
         union all select 'r' || n * (1 + (n + day - date '2018-01-01') % 3) || '.example', n from generate_series(1, 465) n
       ) named
     ) v`,
    [id],
  );
  await pool.query(
    `insert into scan_rollups (subject_id, days, start, account_id, names, counts)
     select $1, 7, week, $1, array_agg(name), array_agg(scans)
     from (
       select start - (start - date '2018-01-01') % 7 as week, name, sum(scans)::bigint as scans
       from (select start, unnest(names) as name, unnest(counts) as scans from scan_rollups where subject_id = $1) named
       group by 1, 2
     ) counted group by week`,
    [id],
  );
  await noteChanges(pool, true);
  await pool.query('vacuum analyze');
}

/** Enables or disables the triggers that note changed counters: when seeding, one roll-up at the end is faster. */
async function noteChanges(pool: Pool, notes: boolean): Promise<void> {
  for (const table of ['scan_days', 'scan_values']) {
    await pool.query(`alter table ${table} ${notes ? 'enable' : 'disable'} trigger user`);
  }
}

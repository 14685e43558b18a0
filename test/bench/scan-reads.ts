/**
 * What reading costs beside many scans: analytics of a code with 1,000,000 scans and of one with 1,000, and the counts of a
 * page of codes.
 *
 *   node test/bench/scan-reads.ts [scans]      3,000,000 in all unless told
 *
 * Starts a Postgres of its own with the settings of a local run. Scans of 30 days are written by SQL, and every counter
 * from them.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgres } from '../../local/postgres.ts';
import { codeAnalytics } from '../../src/analytics/code-analytics.ts';
import { newUuid } from '../../src/contract/ids.ts';
import { openDatabase } from '../../src/db/database.ts';
import { DAY_MS } from '../../src/scans/days.ts';
import { ensureMonths, monthOf } from '../../src/scans/partitions.ts';
import { scanCounts } from '../../src/scans/totals.ts';

const SCANS = Number(process.argv[2] ?? 3_000_000);
const [MANY, FEW] = [1_000_000, 1_000];
const CODES = 1_000;
const READS = 500;

const folder = await mkdtemp(join(tmpdir(), 'signpost-bench-'));
const postgres = await startPostgres({ folder });
const database = await openDatabase(postgres.url, 4);
const { pool } = database;
try {
  await database.migrate();
  const now = Date.now();
  await ensureMonths(pool, [...new Set(Array.from({ length: 31 }, (_, day) => monthOf(now - day * DAY_MS)))]);
  const accountId = newUuid();
  const [many, few] = [newUuid(), newUuid()];
  const others = Array.from({ length: CODES }, newUuid);
  await seed(accountId, [many], MANY);
  await seed(accountId, [few], FEW);
  await seed(accountId, others, SCANS - MANY - FEW);
  await count();
  await pool.query('vacuum analyze');
  console.log(`${SCANS} scans of ${CODES + 2} codes`);

  const analytics = (codeId: string) => () => codeAnalytics(database, { accountId, codeId, period: 30, now });
  const page = (first: string) => () => scanCounts(pool, accountId, [first, ...others.slice(0, 24)]);
  const [slow, quick] = await medians(analytics(many), analytics(few));
  console.log(`analytics of ${MANY} scans: ${told(slow)}`);
  console.log(`analytics of ${FEW} scans: ${told(quick)}; ratio of medians ${(slow.p50 / quick.p50).toFixed(2)}`);
  const [withMany, withFew] = await medians(page(many), page(few));
  console.log(`counts of a page of 25 codes: ${told(withMany)} with the one, ${told(withFew)} with the other`);
} finally {
  await database.close();
  await postgres.stop();
  await rm(folder, { recursive: true });
}

function seed(accountId: string, codes: readonly string[], scans: number): Promise<unknown> {
  return pool.query(
    `insert into scans (id, scanned_at, account_id, code_id, kind, rules, country, device, operating_system, browser,
                        referrer, visitor)
     select gen_random_uuid(), now() - (n::float8 / $3) * interval '29 days', $1, ($2::uuid[])[1 + n % $4], 'person', 1,
            (array['DE','FR','US','GB','BR','JP','ES','IT','PL','unknown'])[1 + n * 7 % 10],
            (array['mobile','mobile','mobile','desktop','tablet'])[1 + n * 3 % 5],
            (array['iOS','Android','Windows','macOS'])[1 + n % 4],
            (array['Safari','Chrome','Firefox','Samsung Internet for Android'])[1 + n * 5 % 4],
            case when n % 3 > 0 then 'direct' else 'r' || n % 60 || '.example' end, n::bigint * 7919
     from generate_series(0, $3::integer - 1) n`,
    [accountId, codes, scans, codes.length],
  );
}

async function count(): Promise<void> {
  await pool.query(`insert into scan_days select code_id, (scanned_at at time zone 'UTC')::date, account_id, count(*),
    count(distinct visitor) from scans group by 1, 2, 3`);
  await pool.query(`insert into scan_hours select code_id, date_trunc('hour', scanned_at), account_id, count(*),
    count(distinct visitor) from scans group by 1, 2, 3`);
  for (const dimension of ['country', 'device', 'operating_system', 'browser', 'referrer']) {
    await pool.query(`insert into scan_values select code_id, (scanned_at at time zone 'UTC')::date, '${dimension}',
      ${dimension}, account_id, count(*) from scans group by 1, 2, 4, 5`);
  }
  await pool.query('insert into scan_totals select code_id, account_id, sum(scans) from scan_days group by 1, 2');
}

interface Times {
  readonly p50: number;
  readonly p99: number;
}

/** Two kinds of reads in turn, so that a busy moment meets both. */
async function medians(one: () => Promise<unknown>, other: () => Promise<unknown>): Promise<[Times, Times]> {
  const took: [number[], number[]] = [[], []];
  for (let read = 0; read < READS; read++) {
    for (const [which, work] of [one, other].entries()) {
      const start = performance.now();
      await work();
      took[which]?.push(performance.now() - start);
    }
  }
  const [a, b] = took.map((times) => {
    times.sort((x, y) => x - y);
    return { p50: times[READS / 2] ?? 0, p99: times[Math.floor(READS * 0.99)] ?? 0 };
  });
  return [a as Times, b as Times];
}

function told({ p50, p99 }: Times): string {
  return `p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`;
}

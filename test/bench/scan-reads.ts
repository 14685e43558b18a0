/**
 * What reads cost when there are many scans: analytics of a code with 1,000,000 scans and of one with 1,000, once with
 * as many countries and referrers as so many scans have, and once with only as many as the other code; the page of
 * codes on which each of them is; and, in the core, the report of an account of 10,000 codes over 365 days with its top
 * codes.
 *
 *   node test/bench/scan-reads.ts [scans]      default: 10,000,000 in total
 *
 * Scans of 30 days and all counters are written with SQL; for the large account, only counters. Each read is measured
 * as the core does it, in this process, and over REST, requested from this process.
 */
import { randomBytes } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { encodeId } from '../../common/contract/ids.ts';
import { DAY_MS } from '../../common/runtime/durations.ts';
import { ListCodesRequestSchema } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { codeAnalytics } from '../../src/analytics/code-analytics.ts';
import { figuresOf } from '../../src/analytics/figures.ts';
import { cursors } from '../../src/calls/cursors.ts';
import { listCodes } from '../../src/codes/list/list-codes.ts';
import { openDatabase } from '../../src/db/database.ts';
import { inSnapshot } from '../../src/db/snapshot.ts';
import { entities } from '../../src/entities.ts';
import { topCodes } from '../../src/scans/reports/top-codes.ts';
import { resetBurstLimits } from './burst-limits.ts';
import { startPlatform } from './platform.ts';
import { connectRest, requestText } from './rest-client.ts';
import { type SeededAccount, seedAccount, seedAccountCounters, seedCounters, seedScans } from './scan-reads-seed.ts';

const SCANS = Number(process.argv[2] ?? 10_000_000);
const [MANY, FEW] = [1_000_000, 1_000];
const CODES = 1_000;
const PAGE = 25;
const LARGE = { codes: 10_000, days: 365 };

/** Targets: the ratio of the medians with many and few scans; the median of an account's report, in ms. */
const AIMS = { ratio: 1.5, report: 100 };
const [WARM_UP, READS] = [100, 500];

/** Reads between two resets of the rate limit: a key allows 120 requests a minute. */
const WINDOW = 100;

await using platform = await startPlatform();
const database = await openDatabase(platform.databaseUrl, 4, entities);
try {
  const { pool } = database;
  // With equally many codes, so that their pages differ only in scans.
  const [busy, quiet] = [await seedAccount(platform, pool, CODES), await seedAccount(platform, pool, CODES)];
  const [most = '', uniform = '', ...others] = busy.codes;
  const [little = ''] = quiet.codes;
  const start = performance.now();
  await seedScans(pool, busy, [most], MANY);
  await seedScans(pool, busy, [uniform], MANY, { countries: 14, referrers: 10 });
  await seedScans(pool, busy, others, SCANS - 2 * MANY - FEW * PAGE);
  await seedScans(pool, quiet, quiet.codes.slice(0, PAGE), FEW * PAGE);
  const rollUp = await seedCounters(pool);
  const large = await seedAccount(platform, pool, LARGE.codes);
  await seedAccountCounters(pool, large, LARGE.days);
  console.log(
    `${SCANS} scans of ${CODES + PAGE} codes, written in ${Math.round((performance.now() - start) / 1_000)} s`,
  );
  const { rows } = await pool.query<{ code_id: string; values: string }>(
    'select code_id, count(*) as values from scan_values where code_id = any($1::uuid[]) group by 1',
    [[most, uniform, little]],
  );
  const values = new Map(rows.map((row) => [row.code_id, row.values]));
  const { rows: counters } = await pool.query<{ values: number; rollups: number; bytes: string; value_bytes: string }>(
    `select (select count(*)::integer from scan_values) as values,
            (select count(*)::integer from scan_rollups where account_id <> $1) as rollups,
            (select sum(pg_column_size(r.*)) from scan_rollups r where account_id <> $1) as bytes,
            (select sum(pg_column_size(v.*)) from scan_values v) as value_bytes`,
    [large.id],
  );
  const { values: all = 0, rollups, bytes, value_bytes } = counters[0] ?? {};
  console.log(
    `${all} counters of values (${value_bytes} bytes) summed up in ${Math.round(rollUp)} ms: ` +
      `${rollups} rows (${bytes} bytes), ${(rollUp / (all / 1e6) / 1_000).toFixed(1)} s per million`,
  );
  console.log(`values of 30 days: ${[most, uniform, little].map((code) => values.get(code)).join(', ')}`);

  const platformUrl = platform.url;
  // Not earlier: the gateway closes connections that are idle for as long as the writing took.
  const client = await connectRest(Number(new URL(platformUrl).port));
  const issued = cursors(randomBytes(32)).byId;
  const rest =
    (path: string, { key }: SeededAccount) =>
    async () => {
      const status = await client.send(requestText('GET', path, key));
      if (status !== 200) throw new Error(`${path} answered ${status}`);
    };
  const analytics = (account: SeededAccount, codeId: string): Reads => ({
    core: () =>
      inSnapshot(pool, undefined, (tx) =>
        codeAnalytics(tx, { accountId: account.id, codeId, period: 30, now: Date.now() }),
      ),
    rest: rest(`/qr-codes/${encodeId('qr', codeId)}/analytics`, account),
  });
  const page = (account: SeededAccount): Reads => ({
    core: () => listCodes({ pool, platformUrl, cursors: issued }, account.id, create(ListCodesRequestSchema)),
    rest: rest('/qr-codes', account),
  });
  const compared: [string, Reads, Reads][] = [
    ['analytics', analytics(busy, most), analytics(quiet, little)],
    ['analytics, values as few as the other’s', analytics(busy, uniform), analytics(quiet, little)],
    ['a page of 25', page(busy), page(quiet)],
  ];
  for (const [what, one, other] of compared) {
    for (const by of ['core', 'rest'] as const) {
      const [many, few] = await inTurn(one[by], other[by]);
      const ratio = (many.p50 / few.p50).toFixed(2);
      console.log(
        `${by}: ${what}: ${timesText(many)} with ${MANY} scans; ${timesText(few)} with ${FEW}; medians ${ratio}, aim ${AIMS.ratio}`,
      );
    }
  }
  const window = { from: Date.now() - (LARGE.days - 1) * DAY_MS, to: Date.now() };
  const [report, top] = await inTurn(
    () => inSnapshot(pool, undefined, (tx) => figuresOf(tx, { accountId: large.id, ...window }, 'days')),
    () => inSnapshot(pool, undefined, (tx) => topCodes(tx, large.id, { ...window, limit: 25 })),
  );
  const what = `an account of ${LARGE.codes} codes over ${LARGE.days} days`;
  console.log(
    `core: report on ${what}: ${timesText(report)}, aim ${AIMS.report} ms; its top 25 codes: ${timesText(top)}`,
  );
  client.close();
} finally {
  await database.close();
}

/** A read as the core does it, in this process, and the same read over REST. */
type Reads = Record<'core' | 'rest', () => Promise<unknown>>;

interface Times {
  readonly p50: number;
  readonly p99: number;
}

/** Measures two kinds of reads in turn, so that a busy moment of the machine affects both; in ms. */
async function inTurn(one: () => Promise<unknown>, other: () => Promise<unknown>): Promise<[Times, Times]> {
  const durations: [number[], number[]] = [[], []];
  for (let read = -WARM_UP; read < READS; read++) {
    if (read % WINDOW === 0) await resetBurstLimits(database.pool);
    for (const [which, work] of [one, other].entries()) {
      const start = performance.now();
      await work();
      if (read >= 0) durations[which]?.push(performance.now() - start);
    }
  }
  return durations.map(timesOf) as [Times, Times];
}

function timesOf(times: readonly number[]): Times {
  const sorted = times.toSorted((x, y) => x - y);
  return { p50: sorted[READS / 2] ?? 0, p99: sorted[Math.floor(READS * 0.99)] ?? 0 };
}

function timesText({ p50, p99 }: Times): string {
  return `p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`;
}

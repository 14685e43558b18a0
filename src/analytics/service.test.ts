import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { encodeId, newUuid } from '../../common/contract/ids.ts';
import { MAY_BE_IDLE } from '../../common/postgres/connection-options.ts';
import { transaction } from '../../common/postgres/sql.ts';
import { DAY_MS, HOUR_MS } from '../../common/runtime/durations.ts';
import {
  AnalyticsService,
  type Figures,
  Granularity,
  type Share,
  ShareSchema,
} from '../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { type Database, openDatabase } from '../db/database.ts';
import { entities } from '../entities.ts';
import { serviceClient } from '../rpc/service-client.fixture.ts';
import { archiveMonths } from '../scans/archive/archive.ts';
import { dayOf } from '../scans/days.ts';
import { auditScans } from '../scans/ledger/audit-scans.ts';
import { inMemoryLog, newScannedCode, pollHandler, type ScannedCode, scanRecord } from '../scans/scans.fixture.ts';
import { analyticsService } from './service.ts';

let database: Database;
let record: ReturnType<typeof pollHandler>;

beforeAll(async () => {
  database = await openDatabase((await freshDatabase()).url, 8, entities);
  record = pollHandler({ log: inMemoryLog(), database, logger: pino({ level: 'silent' }) });
});
afterAll(() => database.close());

/** Calls the service as this account. */
const clientOf = (id: string) => serviceClient(AnalyticsService, analyticsService(database), { id });

/** Creates a code, and its account unless that exists. */
async function newCode(accountId: string = newUuid()): Promise<ScannedCode> {
  const { codeId } = newScannedCode();
  await database.pool.query(
    `insert into accounts (id, name, plan) values ($1, 'Test', 'business') on conflict do nothing`,
    [accountId],
  );
  await database.pool.query(
    `insert into codes (id, account_id, type, short_code, target_url)
     values ($1, $2, 'dynamic', right($1::uuid::text, 7), 'https://a.example')`,
    [codeId, accountId],
  );
  return { codeId, accountId };
}

function idOf({ codeId }: ScannedCode): string {
  return encodeId('qr', codeId);
}

function sum(entries: readonly Share[]): bigint {
  return entries.reduce((total, { scans }) => total + scans, 0n);
}

function expectCompleteBreakdowns(figures: Figures | undefined): void {
  const { scans, countries, devices, operatingSystems, browsers, referrers } = figures as Figures;
  for (const entries of [countries, devices, operatingSystems, browsers, referrers]) expect(sum(entries)).toBe(scans);
}

/** Does something right before the next statement of this name. */
function beforeStatement(name: string, work: () => Promise<unknown>): void {
  const { prototype } = pg.Client;
  const query: (...given: unknown[]) => unknown = prototype.query;
  // With callbacks and streams, too, which must be passed on at once.
  const spy = vi.spyOn(prototype, 'query').mockImplementation(function (this: pg.Client, ...given: unknown[]) {
    if ((given[0] as { name?: string }).name !== name) return query.apply(this, given);
    spy.mockRestore();
    return work().then(() => query.apply(this, given));
  });
}

test('a code that was never scanned has zeros for every day and empty breakdowns', async () => {
  const code = await newCode();
  const analytics = await clientOf(code.accountId).getCodeAnalytics({ id: idOf(code), period: 7 });
  const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  expect(analytics).toMatchObject({ id: idOf(code), totalScans: 0n, period: 7, to: dayOf(today) });
  expect(analytics.from).toBe(dayOf(today - 6 * DAY_MS));
  expect(analytics.figures?.intervals.map(({ start, scans, uniqueScans }) => [start, scans, uniqueScans])).toEqual(
    Array.from({ length: 7 }, (_, index) => [dayOf(today - (6 - index) * DAY_MS), 0n, 0n]),
  );
  expect(analytics.figures?.countries).toEqual([]);
});

test('total_scans covers the whole lifetime, breakdowns only the window', async () => {
  const code = await newCode();
  const now = Date.now();
  await record([
    scanRecord(code, { at: now, country: 'DE' }),
    scanRecord(code, { at: now, country: 'DE' }),
    scanRecord(code, { at: now - 2 * DAY_MS, country: 'FR' }),
    scanRecord(code, { at: now - 60 * DAY_MS }),
  ]);
  const { totalScans, figures } = await clientOf(code.accountId).getCodeAnalytics({ id: idOf(code) });
  expect(totalScans).toBe(4n);
  expect(figures).toMatchObject({ scans: 3n, uniqueScans: 2n });
  expect(figures?.intervals).toHaveLength(30);
  expect(figures?.intervals.at(-1)).toMatchObject({ start: dayOf(now), scans: 2n, uniqueScans: 1n });
  expect(figures?.countries.map(({ value, scans }) => [value, scans])).toEqual([
    ['DE', 2n],
    ['FR', 1n],
  ]);
  expectCompleteBreakdowns(figures);
});

test.each([
  [0, 1],
  [-5, 1],
  [1_000, 365],
])('a period of %i is clamped to %i', async (requested, used) => {
  const code = await newCode();
  const { period, figures } = await clientOf(code.accountId).getCodeAnalytics({ id: idOf(code), period: requested });
  expect([period, figures?.intervals.length]).toEqual([used, used]);
});

test('a breakdown has at most 50 entries, most scans first, the rest folded into other', async () => {
  const code = await newCode();
  const polls = Array.from({ length: 60 }, (_, host) =>
    Array.from({ length: 60 - host }, () => scanRecord(code, { referrerHost: `r${host}.example` })),
  );
  await record(polls.flat());
  const { figures } = await clientOf(code.accountId).getCodeAnalytics({ id: idOf(code), period: 1 });
  const referrers = figures?.referrers ?? [];
  expect(referrers).toHaveLength(50);
  // 49 by name; the other 11 have 11 + … + 1 scans, which puts `other` first.
  expect(referrers.slice(0, 3)).toEqual([
    create(ShareSchema, { value: 'other', scans: 66n }),
    create(ShareSchema, { value: 'r0.example', scans: 60n }),
    create(ShareSchema, { value: 'r1.example', scans: 59n }),
  ]);
  expectCompleteBreakdowns(figures);
});

test('exactly 50 values are all named', async () => {
  const code = await newCode();
  await record(Array.from({ length: 50 }, (_, host) => scanRecord(code, { referrerHost: `r${host}.example` })));
  const { figures } = await clientOf(code.accountId).getCodeAnalytics({ id: idOf(code), period: 1 });
  expect(figures?.referrers).toHaveLength(50);
  expect(figures?.referrers.map(({ value }) => value)).not.toContain('other');
});

test('a foreign, deleted, malformed or unknown id is not found, for every method that takes one', async () => {
  const code = await newCode();
  const client = clientOf(newUuid());
  const window = { from: timestampFromMs(0), to: timestampFromMs(DAY_MS) };
  const exported = async (codeId: string) => {
    for await (const _ of client.exportScans({ codeId, ...window })) expect.unreachable();
  };
  for (const id of [idOf(code), 'qr_x', '', encodeId('folder', newUuid())]) {
    const calls = [
      () => client.getCodeAnalytics({ id }),
      () => client.getScanReport({ scope: { case: 'codeId', value: id }, ...window }),
      () => client.getScanReport({ scope: { case: 'folderId', value: id }, ...window }),
      () => exported(id),
    ];
    for (const call of calls) {
      const error = await call().then(() => undefined, readFailure);
      expect(error?.reason).toBe('NOT_FOUND');
    }
  }
});

test('an hourly report counts and breaks down exactly the hours of its window', async () => {
  const code = await newCode();
  const day = Date.UTC(2026, 2, 10);
  const hours = [1, 5, 23, 24 + 3, 48 + 2, 48 + 20];
  await record(hours.map((hour) => scanRecord(code, { at: day + hour * HOUR_MS, country: 'DE' })));
  const client = clientOf(code.accountId);
  const report = (from: number, to: number) =>
    client.getScanReport({
      scope: { case: 'codeId', value: idOf(code) },
      from: timestampFromMs(day + from * HOUR_MS + 1),
      to: timestampFromMs(day + to * HOUR_MS + 59_000),
      granularity: Granularity.HOUR,
    });
  for (const [from, to] of [
    [0, 71],
    [5, 50],
    [5, 23],
    [2, 4],
    [5, 5],
    [24, 47],
    [23, 24],
  ] as const) {
    const { figures } = await report(from, to);
    const expected = BigInt(hours.filter((hour) => hour >= from && hour <= to).length);
    expect([from, to, figures?.scans, figures?.intervals.length]).toEqual([from, to, expected, to - from + 1]);
    expectCompleteBreakdowns(figures);
  }
  expect((await report(5, 5)).figures?.intervals[0]?.start).toBe('2026-03-10T05:00:00Z');
});

test('scans of a code with a policy are broken down by version, rule and variant, by days, hours and in an export', async () => {
  const code = await newCode();
  const day = Date.UTC(2026, 2, 17);
  const decided = [
    [3, 2, 'a'],
    [3, 2, 'a'],
    [3, 2, 'a'],
    [3, 0, ''],
    [3, 0, ''],
    [3, 2, 'b "\\,{} ü'],
    [2, 2, 'a'],
    undefined,
  ] as const;
  const records = decided.map((target, index) =>
    scanRecord(code, {
      at: day + index * 6 * HOUR_MS,
      ...(target && { targetVersion: target[0], targetRule: target[1], targetVariant: target[2] }),
    }),
  );
  // The first poll creates the counters; the second increments them and repeats scans.
  await record(records.slice(0, 2));
  await record([...records, ...records.slice(4)]);
  const client = clientOf(code.accountId);
  const scope = { case: 'codeId', value: idOf(code) } as const;
  const report = async (from: number, to: number, granularity: Granularity = Granularity.DAY) => {
    const window = { from: timestampFromMs(from), to: timestampFromMs(to), granularity };
    const { figures } = await client.getScanReport({ scope, ...window });
    return figures?.targets.map(({ version, rule, variant, scans }) => [version, rule, variant, scans]);
  };
  expect(await report(day, day + DAY_MS)).toEqual([
    [3, 2, 'a', 3n],
    [3, 0, '', 2n],
    [3, 2, 'b "\\,{} ü', 1n],
    [2, 2, 'a', 1n],
  ]);
  expect(await report(day + 6 * HOUR_MS, day + 30 * HOUR_MS, Granularity.HOUR)).toEqual([
    [3, 0, '', 2n],
    [3, 2, 'a', 2n],
    [3, 2, 'b "\\,{} ü', 1n],
  ]);
  expect(await report(day - DAY_MS, day - 1)).toEqual([]);
  const whole = { from: timestampFromMs(day), to: timestampFromMs(day + 2 * DAY_MS) };
  expect((await client.getScanReport(whole)).figures?.targets).toEqual([]);
  const exported = (await Array.fromAsync(client.exportScans(whole))).flatMap(({ scans }) => scans);
  expect(
    exported.map(({ targetVersion, targetRule, targetVariant }) => [targetVersion, targetRule, targetVariant]),
  ).toEqual(decided.map((target) => target ?? [undefined, undefined, undefined]));
  const audit = await auditScans(database, { from: day, to: day + 2 * DAY_MS });
  expect(audit.differences).toEqual([]);
  await database.pool.query('update scan_targets set scans = scans + 1 where code_id = $1 and version = 2', [
    code.codeId,
  ]);
  expect((await auditScans(database, { from: day, to: day + 2 * DAY_MS })).differences).toMatchObject([
    { code_id: code.codeId, day: '2026-03-18', counter: 'targets', expected: 1, counted: 2 },
  ]);
});

test('beyond 1,000 targets, the rest is one entry of version 0', async () => {
  const code = await newCode();
  const scans = Array.from({ length: 1_001 }, (_, index) => scanRecord(code, { targetVersion: index + 1 }));
  const targets = async () => {
    const { figures } = await clientOf(code.accountId).getCodeAnalytics({ id: idOf(code), period: 1 });
    return figures?.targets.map(({ version, rule, variant, scans }) => [version, rule, variant, scans]) ?? [];
  };
  await record(scans.slice(0, 1_000));
  expect((await targets()).at(-1)).toEqual([1, 0, '', 1n]);
  await record(scans);
  const folded = await targets();
  expect(folded).toHaveLength(1_000);
  expect(folded.slice(0, 2)).toEqual([
    [0, 0, '', 2n],
    [1_001, 0, '', 1n],
  ]);
});

test('a report covers a code, a group of codes or the whole account, and never another account', async () => {
  const accountId = newUuid();
  const [a, b, c] = [await newCode(accountId), await newCode(accountId), await newCode(accountId)];
  const foreign = await newCode();
  const now = Date.now();
  await record([a, a, b, c, foreign].map((code) => scanRecord(code, { at: now })));
  const folder = newUuid();
  const { pool } = database;
  await pool.query(`insert into folders (id, account_id, name) values ($1, $2, 'Folder')`, [folder, accountId]);
  await pool.query('update codes set folder_id = $1 where id = any($2)', [
    folder,
    [a.codeId, b.codeId, foreign.codeId],
  ]);
  const client = clientOf(accountId);
  const window = { from: timestampFromMs(now - DAY_MS), to: timestampFromMs(now) };
  const query = vi.spyOn(pg.Client.prototype, 'query');
  onTestFinished(() => query.mockRestore());
  const scansOf = async (request: Parameters<typeof client.getScanReport>[0]) => {
    const { figures } = await client.getScanReport({ ...request, ...window });
    const byHour = await client.getScanReport({ ...request, ...window, granularity: Granularity.HOUR });
    expect(byHour.figures?.scans).toBe(figures?.scans);
    expectCompleteBreakdowns(figures);
    expectCompleteBreakdowns(byHour.figures);
    return figures?.scans;
  };
  expect(await scansOf({})).toBe(4n);
  expect(await scansOf({ scope: { case: 'codeId', value: idOf(a) } })).toBe(2n);
  const inFolder = { scope: { case: 'folderId', value: encodeId('folder', folder) } } as const;
  expect(await scansOf(inFolder)).toBe(3n);

  const tag = newUuid();
  await pool.query(`insert into tags (id, account_id, name) values ($1, $2, 'Tag')`, [tag, accountId]);
  await pool.query('insert into code_tags (code_id, tag_id) select unnest($1::uuid[]), $2', [
    [a.codeId, b.codeId],
    tag,
  ]);
  const tagged = { scope: { case: 'tagId', value: encodeId('tag', tag) } } as const;
  expect(await scansOf(tagged)).toBe(3n);
  // Deleted codes keep their labels, as they may be restored.
  await pool.query('update codes set deleted_at = now() where id = $1', [a.codeId]);
  expect([await scansOf(inFolder), await scansOf(tagged)]).toEqual([1n, 1n]);
  // A folder may have millions of codes.
  const values = query.mock.calls.flatMap(([call]) => (call as { readonly values?: unknown[] }).values ?? []);
  expect(values).toContain(folder);
  expect(values.filter((value) => String(value).includes(b.codeId))).toEqual([]);

  // Whole days, which the dashboard asks for once a minute, are read from counters only.
  query.mockClear();
  const today = now - (now % DAY_MS);
  const twoDays = await client.getScanReport({
    from: timestampFromMs(today - DAY_MS),
    to: timestampFromMs(today + DAY_MS - 1),
    granularity: Granularity.HOUR,
  });
  expect([twoDays.figures?.scans, twoDays.figures?.intervals.length]).toEqual([4n, 48]);
  expectCompleteBreakdowns(twoDays.figures);
  const texts = query.mock.calls.map(([call]) => (call as { readonly text?: string }).text ?? '');
  expect(texts.join()).toContain('scan_hours');
  expect(texts.filter((text) => /\b(from|join) scans\b/.test(text))).toEqual([]);

  const top = await client.listTopCodes({ ...window, limit: 2 });
  expect(top.codes.map(({ codeId, scans }) => [codeId, scans])).toEqual([
    [idOf(a), 2n],
    [idOf([b, c].sort((x, y) => (x.codeId < y.codeId ? -1 : 1))[0] as ScannedCode), 1n],
  ]);
});

test('all figures of a report are of one moment', async () => {
  const code = await newCode();
  const at = Date.now();
  await record([scanRecord(code, { at })]);
  const client = clientOf(code.accountId);
  const window = { from: timestampFromMs(at - DAY_MS), to: timestampFromMs(at) };
  const scope = { case: 'codeId', value: idOf(code) } as const;
  for (const [index, granularity] of [Granularity.DAY, Granularity.HOUR].entries()) {
    beforeStatement(index === 0 ? 'scans_read_values_code' : 'scans_read_values_by_hour_code', () =>
      record([scanRecord(code, { at })]),
    );
    const { figures } = await client.getScanReport({ ...window, scope, granularity });
    expect(figures?.scans).toBe(BigInt(index + 1));
    expectCompleteBreakdowns(figures);
  }
});

test('a report ends, also in Postgres, when its caller has gone', async () => {
  const code = await newCode();
  const window = { from: timestampFromMs(Date.now() - DAY_MS), to: timestampFromMs(Date.now()) };
  const inPostgres = async () => {
    const { rows } = await database.pool.query(
      `select from pg_stat_activity where datname = current_database() and state = 'active' and wait_event_type = 'Lock'`,
    );
    return rows.length;
  };
  await transaction(database.pool, async (tx) => {
    // Reports wait for these.
    await tx.query(MAY_BE_IDLE);
    await tx.query('lock table scan_days, scan_rollups, scan_totals');
    for (const call of ['getScanReport', 'listTopCodes', 'getCodeAnalytics'] as const) {
      const caller = new AbortController();
      const request = call === 'getCodeAnalytics' ? { id: idOf(code) } : window;
      const report = clientOf(code.accountId)[call](request, { signal: caller.signal });
      await expect.poll(inPostgres).toBeGreaterThan(0);
      caller.abort();
      await expect(report).rejects.toThrow('aborted');
      await expect.poll(inPostgres).toBe(0);
    }
  });
});

test('windows that are too long or reversed are rejected', async () => {
  const client = clientOf(newUuid());
  const outcome = (days: number, granularity: Granularity) =>
    client.getScanReport({ from: timestampFromMs(DAY_MS), to: timestampFromMs(days * DAY_MS), granularity }).then(
      () => 'accepted',
      (error: unknown) => readFailure(error).message,
    );
  expect(await outcome(1_100, Granularity.DAY)).toBe('accepted');
  expect(await outcome(1_101, Granularity.DAY)).toBe('to: the window is limited to 1,100 days.');
  expect(await outcome(32, Granularity.HOUR)).toBe('accepted');
  expect(await outcome(33.1, Granularity.HOUR)).toBe('to: the window is limited to 32 days by hour.');
  expect(await outcome(0.5, Granularity.DAY)).toBe('to: must not be before `from`, nor after the year 9999.');
  const end = Date.UTC(10_000, 0) - 1;
  for (const [length, granularity] of [
    [10 * DAY_MS, Granularity.DAY],
    [HOUR_MS, Granularity.HOUR],
  ] as const) {
    const { figures } = await client.getScanReport({
      from: timestampFromMs(end - length),
      to: timestampFromMs(end),
      granularity,
    });
    expect(figures?.intervals.at(-1)?.start).toContain('9999-12-31');
  }
  const early = client.listTopCodes({ from: timestampFromMs(-1), to: timestampFromMs(0) });
  await expect(early).rejects.toThrow('from: must be in the years 1970 to 9999.');
});

test('an export contains every scan of its window once, oldest first, in messages of at most 1,000', async () => {
  const accountId = newUuid();
  const [a, b] = [await newCode(accountId), await newCode(accountId)];
  const start = Date.UTC(2026, 7, 31, 23, 59, 59);
  // Many share a millisecond, and they span two months.
  const records = Array.from({ length: 2_500 }, (_, index) =>
    scanRecord(index % 5 ? a : b, { at: start + Math.floor(index / 10) * 10, referrerHost: 'example.org' }),
  );
  await record([...records, scanRecord(await newCode(), { at: start })]);
  const client = clientOf(accountId);
  const exported = async (codeId?: string) => {
    const window = { from: timestampFromMs(start), to: timestampFromMs(start + 2_490) };
    const scans = [];
    for await (const message of client.exportScans({ ...window, ...(codeId !== undefined && { codeId }) })) {
      expect(message.scans.length).toBeLessThanOrEqual(1_000);
      scans.push(...message.scans);
    }
    return scans;
  };
  const all = await exported();
  expect(new Set(all.map(({ id }) => id)).size).toBe(2_490);
  expect(all).toHaveLength(2_490);
  const times = all.map(({ scannedAt }) => Number(scannedAt?.seconds) * 1e9 + Number(scannedAt?.nanos));
  expect(times).toEqual(times.toSorted((x, y) => x - y));
  expect(all[0]).toMatchObject({
    device: 'mobile',
    operatingSystem: 'iOS',
    browser: 'Safari',
    referrer: 'example.org',
  });
  expect(await exported(idOf(b))).toHaveLength(498);
});

test('an archived month can be reported by whole days; its partial days and single scans are rejected', async () => {
  const code = await newCode();
  const noon = Date.UTC(2022, 5, 15, 12);
  await record([scanRecord(code, { at: noon }), scanRecord(code, { at: noon + HOUR_MS })]);
  const client = clientOf(code.accountId);
  const scope = { case: 'codeId', value: idOf(code) } as const;
  const report = (from: number, to: number) =>
    client.getScanReport({
      scope,
      granularity: Granularity.HOUR,
      from: timestampFromMs(from),
      to: timestampFromMs(to),
    });
  const day = Math.floor(noon / DAY_MS) * DAY_MS;
  const before = await report(day, day + DAY_MS - 1);
  expect(before.figures).toMatchObject({ scans: 2n });
  beforeStatement('scans_read_values_by_hour_code', () =>
    archiveMonths(database.pool, { hotMonths: 1, to: 'table', folder: '' }, Date.now()),
  );
  expect(await report(day, noon).catch(readFailure)).toMatchObject({ reason: 'INVALID_FIELD' });
  expect(await report(day, day + DAY_MS - 1)).toEqual(before);
  for (const [from, to] of [
    [noon, day + DAY_MS - 1],
    [day, noon],
    [noon, noon],
  ] as const) {
    expect(await report(from, to).catch(readFailure)).toMatchObject({ reason: 'INVALID_FIELD' });
  }
  const exported = Array.fromAsync(client.exportScans({ from: timestampFromMs(day), to: timestampFromMs(noon) }));
  await expect(exported).rejects.toThrow('Scans of 2022-06 are archived');
  const later = client.exportScans({
    from: timestampFromMs(day + 16 * DAY_MS),
    to: timestampFromMs(day + 20 * DAY_MS),
  });
  expect(await Array.fromAsync(later)).toEqual([]);
});

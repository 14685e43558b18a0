import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { describe, expect, test } from 'vitest';
import { type CoreClients, createClients } from '../../cli/clients.ts';
import { DAY_MS } from '../../common/runtime/durations.ts';
import { DomainState } from '../../proto/gen/signpost/domains/v1/domains_pb.ts';
import { isolatedEnvironment, type LocalRun, startLocally } from '../../test/harness/local-run.ts';
import { CODES, DOMAIN, ENDPOINT } from './content.ts';

type Place = Awaited<ReturnType<typeof isolatedEnvironment>>;

/** Clients of the core that act for the printed account. */
async function clientsOf(place: Place, run: LocalRun): Promise<CoreClients> {
  const [account = ''] = /acct_[0-9a-z]+/.exec(await run.prints('dashboard link')) ?? [];
  const token = (await readFile(join(place.DATA_DIR, 'service-token'), 'utf8')).trim();
  const headers = { authorization: `Bearer ${token}`, 'signpost-account': account };
  return createClients({ baseUrl: `http://127.0.0.1:${place.CORE_PORT}`, headers });
}

async function stopped(run: LocalRun): Promise<void> {
  run.signal('SIGTERM');
  await run.ended;
}

/** The ledger and every counter of the sample's days, once all of its scans are recorded. */
async function settledAudit({ scans }: CoreClients) {
  const window = { from: timestampFromMs(Date.now() - 100 * DAY_MS), to: timestampFromMs(Date.now()) };
  await expect
    .poll(
      async () => {
        const { answered, recorded, waiting } = await scans.auditScans(window);
        return answered > 0n && recorded >= answered && waiting === 0n;
      },
      { timeout: 60_000, interval: 500 },
    )
    .toBe(true);
  return scans.auditScans(window);
}

/** Everything that a dashboard shows of a busy account. */
async function expectBusyAccount(core: CoreClients): Promise<void> {
  const { codes, total } = await core.codes.listCodes({ limit: 100 });
  expect(total).toBe(BigInt(CODES.length + 29));
  expect(CODES).toHaveLength(20);
  expect(codes.filter(({ paused }) => paused)).toHaveLength(2);
  const { folders } = await core.taxonomy.listFolders({});
  expect(folders.map(({ name }) => name)).toEqual([
    'Kitchen equipment',
    'Menus',
    'Packaging',
    'Table stands',
    'Windows and walls',
  ]);
  const { batches } = await core.batches.listBatches({});
  expect(batches.map(({ counts }) => counts)).toMatchObject([{ total: 30, created: 29, failed: 1 }]);
  const { domains } = await core.domains.listDomains({});
  expect(domains).toMatchObject([{ hostname: DOMAIN, state: DomainState.PENDING }]);
  const { endpoints } = await core.webhooks.listEndpoints({});
  expect(endpoints).toMatchObject([{ url: ENDPOINT.url }]);
  expect((await core.accounts.listMembers({})).members).toHaveLength(4);

  const id = codes.find(({ name }) => name === CODES[0]?.name)?.id ?? '';
  const { versions } = await core.targets.listTargetVersions({ id });
  expect(versions.map(({ version }) => version)).toEqual([3, 2, 1]);
  const { figures, totalScans } = await core.analytics.getCodeAnalytics({ id, period: 120 });
  expect(BigInt(figures?.scans ?? 0)).toBe(totalScans);
  const targets = figures?.targets.map(({ version, rule, variant }) => `${version} ${rule} ${variant}`.trim());
  expect(new Set(targets)).toEqual(new Set(['2 1', '2 0', '3 1', '3 2', '3 3 photos', '3 3 text only']));
  expect(figures?.countries.length).toBeGreaterThan(5);
  expect(figures?.devices[0]?.value).toBe('mobile');
  expect(figures?.referrers.map(({ value }) => value)).toContain('instagram.com');
  const from = timestampFromMs(Date.now() - 91 * DAY_MS);
  const report = await core.analytics.getScanReport({ from, to: timestampFromMs(Date.now()) });
  const days = report.figures?.intervals.filter(({ scans }) => scans > 0n) ?? [];
  expect(days.length).toBeGreaterThanOrEqual(90);
  const sum = (part: typeof days) => part.reduce((all, { scans }) => all + scans, 0n);
  expect(sum(days.slice(-29, -1))).toBeGreaterThan(sum(days.slice(1, 29)));
}

describe('the sample data of npm start', () => {
  test('fills a busy account, though it was interrupted, with nothing twice, and is not added again', async () => {
    const place = await isolatedEnvironment();
    const sampled = { ...place, SAMPLE: '' };
    const request = join(place.DATA_DIR, 'sample');
    const first = startLocally(sampled);
    const core = await clientsOf(place, first);
    await expect.poll(async () => (await core.batches.listBatches({})).batches.length, { timeout: 60_000 }).toBe(1);
    await stopped(first);
    const interrupted = await readFile(request);
    const seen = async () => [
      (await core.codes.listCodes({})).total,
      (await core.batches.listBatches({})).total,
      (await core.domains.listDomains({})).domains.length,
      (await core.webhooks.listEndpoints({})).endpoints.length,
      (await core.accounts.listMembers({})).members.length,
    ];

    const second = startLocally(sampled);
    await second.prints('The sample data is complete.');
    const { recorded, ...audit } = await settledAudit(core);
    expect(audit).toMatchObject({ duplicates: 0n, deadLettered: 0n, waiting: 0n, differences: [] });
    expect(recorded).toBeGreaterThan(20_000n);
    expect(recorded).toBeLessThan(40_000n);
    expect([audit.answered, audit.spooled, audit.published]).toEqual(Array(3).fill(recorded));
    await expectBusyAccount(core);
    expect(await seen()).toEqual([49n, 1n, 1, 1, 4]);
    await stopped(second);

    // As if it had been interrupted at the very end.
    await writeFile(request, interrupted);
    const third = startLocally(sampled);
    await third.prints('The sample data is complete.');
    await expect.poll(async () => (await settledAudit(core)).duplicates, { timeout: 60_000 }).toBe(recorded);
    expect(await settledAudit(core)).toMatchObject({ differences: [], recorded, answered: recorded });
    expect(await seen()).toEqual([49n, 1n, 1, 1, 4]);
    await stopped(third);

    const fourth = startLocally(sampled);
    expect(await fourth.prints('dashboard link')).not.toContain('Sample data');
    expect(await seen()).toEqual([49n, 1n, 1, 1, 4]);
    // Four starts, and 30,000 scans recorded twice.
  }, 180_000);

  test('is not added with SAMPLE=false, although it was interrupted, nor to an account that began without it', async () => {
    const place = await isolatedEnvironment();
    const request = join(place.DATA_DIR, 'sample');
    await mkdir(place.DATA_DIR);
    await writeFile(request, `${Date.now()}\n`);
    const first = startLocally({ ...place, SAMPLE: 'false' });
    expect(await first.prints('dashboard link')).not.toContain('Sample data');
    await stopped(first);
    await rm(request);
    const second = startLocally({ ...place, SAMPLE: 'true' });
    const core = await clientsOf(place, second);
    expect(await second.ready).not.toContain('Sample data');
    expect((await core.codes.listCodes({})).total).toBe(0n);
  });
});

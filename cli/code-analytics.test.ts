import { beforeAll, expect, test } from 'vitest';
import type { AnalyticsJson } from '../common/contract/analytics-json.ts';
import type { CodeJson } from '../common/contract/code-json.ts';
import { type SharedSignpost, sharedSignpost } from '../test/harness/processes.ts';
import { bar, grouped, sparkline } from './charts.ts';
import { commandLine } from './cli.fixture.ts';

let signpost: SharedSignpost;
beforeAll(async () => {
  signpost = await sharedSignpost();
});
const { run, json } = commandLine(() => signpost);

test('analytics are those of REST, and charts for people', async () => {
  const { accountId, apiKey } = await signpost.createAccount();
  const target = ['--target-url', 'https://example.com', '--name', 'Table\u009b 4'];
  const { id, scan_url } = await json<CodeJson>('code', 'create', '--account', accountId, ...target);
  const analytics = ['code', 'analytics', '--account', accountId, '--id', id];
  expect((await run(analytics)).stdout).toMatch(
    /\n0 scans in total\n\nLast 30 days \([\d-]+ to [\d-]+, UTC\): 0 scans/,
  );

  const agents = [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) Version/17.0 Mobile/15E148 Safari/604.1',
    'curl/8',
  ];
  for (const agent of [0, 0, 0, 1].map((index) => agents[index] ?? '')) {
    await fetch(scan_url, { redirect: 'manual', headers: { 'user-agent': agent } });
  }
  const read = () => json<AnalyticsJson>(...analytics, '--period', '7');
  await expect.poll(async () => (await read()).total_scans, { interval: 200 }).toBe(4);
  const shown = await read();
  const headers = { authorization: `Bearer ${apiKey}` };
  const rest = await fetch(`${signpost.url}/api/v1/qr-codes/${id}/analytics?period=7`, { headers });
  expect(((await rest.json()) as { data: unknown }).data).toEqual(shown);
  expect(shown.breakdowns.days).toHaveLength(7);

  const { stdout } = await run(analytics);
  expect(stdout).toMatch(/^Table 4 {2}http/);
  expect(stdout).toMatch(/\n·{29}█\nA character is a day; most scans: 4 on \d{4}-\d\d-\d\d\n/);
  expect(stdout).toMatch(/\nDevices\nmobile {2}3 +75 % {2}█{30}\nbot {5}1 +25 % {2}█{10}\n/);
  expect(stdout).not.toContain('\u001b');
  const coloured = await run(analytics, { FORCE_COLOR: '1' });
  expect(coloured.stdout).toContain('\u001b[32m█');
  for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
});

test('scans of a code with a policy are also broken down by what decided', async () => {
  const { accountId } = await signpost.createAccount();
  const code = ['--account', accountId];
  const { id, scan_url } = await json<CodeJson>('code', 'create', ...code, '--target-url', 'https://example.com');
  const variants = ['--variant', 'a=1=https://example.com/a', '--variant', 'b=1=https://example.com/b'];
  await json('target', 'split', ...code, '--id', id, ...variants);
  const analytics = ['code', 'analytics', ...code, '--id', id];
  const scan = () => fetch(scan_url, { redirect: 'manual' });
  await expect.poll(async () => (await scan()).headers.get('location')).toMatch(/\/[ab]$/);
  const read = () => json<{ targets?: { scans: number }[] }>(...analytics);
  await expect
    .poll(async () => (await read()).targets, { interval: 200 })
    .toMatchObject([{ version: 2, rule: 1, variant: expect.stringMatching(/^[ab]$/) }]);
  expect((await run(analytics)).stdout).toMatch(/\nTargets\nversion 2, rule 1, [ab] {2}\d+ +\d+ % {2}█+\n/);
});

test('a sparkline is proportional from zero', () => {
  expect(sparkline([0, 1, 2, 3, 4, 5, 6, 7, 8])).toBe('·▁▂▃▄▅▆▇█');
  expect(sparkline([0, 1, 1_000])).toBe('·▁█');
  expect(sparkline([0, 0])).toBe('··');
});

test('a bar is proportional from zero, in eighths of a character', () => {
  expect([bar(0, 10, 10), bar(10, 10, 10), bar(5, 10, 5), bar(1, 16, 2), bar(1, 1_000_000, 10)]).toEqual([
    '',
    '██████████',
    '██▌',
    '▏',
    '▏',
  ]);
});

test('many days are summed up in groups, of which the last one is complete', () => {
  expect(grouped([1, 2, 3], 3)).toEqual({ sums: [1, 2, 3], size: 1 });
  expect(grouped([1, 2, 3, 4, 5], 3)).toEqual({ sums: [1, 5, 9], size: 2 });
  const { sums, size } = grouped(new Array(365).fill(1), 60);
  expect([sums.length, sums.reduce((sum, each) => sum + each, 0), size]).toEqual([53, 365, 7]);
});

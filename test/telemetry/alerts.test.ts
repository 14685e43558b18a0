import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Family } from '../harness/scrape.ts';
import { startObserved } from './observed-signpost.ts';
import { hasPromtool, promtool } from './promtool.ts';

const ALERTS = 'deploy/alerts.yml';
const PAGE = 'docs/operating/alerts.md';
const DASHBOARDS = globSync('deploy/grafana/*.json');

const alerts = readFileSync(ALERTS, 'utf8');

/** Prometheus's own. */
const OF_PROMETHEUS = new Set(['up']);

let families: readonly Family[];

beforeAll(async () => {
  families = await (await startObserved()).families();
});

/** The expressions of a dashboard. */
function expressions(dashboard: string): string[] {
  const { panels } = JSON.parse(readFileSync(dashboard, 'utf8')) as {
    panels: { targets?: { expr: string }[] }[];
  };
  return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
}

/** Names of series in an expression: words that are no function, keyword or label. */
function series(expression: string): string[] {
  const withoutLabels = expression
    .replace(/"[^"]*"/g, '')
    .replace(/\{[^}]*\}/g, '')
    .replace(/\b(by|without) *\([^)]*\)/g, '')
    .replace(/\[[^\]]*\]|\boffset \w+/g, '');
  return [...withoutLabels.matchAll(/(?<![\w.])[a-z_]\w*(?! *\(|\w)/g)]
    .map(([name]) => name)
    .filter((name) => !['and', 'or', 'unless', 'e6'].includes(name));
}

/** Whether an alert fires so many minutes after series began; their values: one a minute, in promtool's notation. */
function firesAfter(minutes: number, alert: string, series: Readonly<Record<string, string>>): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'signpost-alerts-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const count = { expr: `count(ALERTS{alertname="${alert}",alertstate="firing"})`, eval_time: `${minutes}m` };
  const passes = (samples: readonly object[]) => {
    const file = join(folder, 'test.yml');
    const test = {
      interval: '1m',
      input_series: Object.entries(series).map(([series, values]) => ({ series, values })),
      promql_expr_test: [{ ...count, exp_samples: samples }],
    };
    writeFileSync(file, JSON.stringify({ rule_files: [resolve(ALERTS)], evaluation_interval: '1m', tests: [test] }));
    return promtool(['test', 'rules', file]) === '';
  };
  const [isFiring, isSilent] = [passes([{ value: 1 }]), passes([])];
  expect(isFiring).not.toBe(isSilent);
  return isFiring;
}

function fires(alert: string, series: string, values: string, minutes: number): boolean {
  return firesAfter(minutes, alert, { [series]: values });
}

/** The labels that an expression names. */
function labels(expression: string): string[] {
  const matched = [...expression.matchAll(/\{([^}]*)\}/g)].flatMap(([, inner = '']) => [
    ...inner.matchAll(/(\w+) *(?:=|!)/g),
  ]);
  const grouped = [...expression.matchAll(/\bby *\(([^)]*)\)/g)].flatMap(([, inner = '']) => inner.split(','));
  return [...matched.map(([, name = '']) => name), ...grouped.map((name) => name.trim())];
}

const EXPRESSIONS = [
  ...[...alerts.matchAll(/^ +expr: (.+)$/gm)].map(([, expression = '']) => [ALERTS, expression] as const),
  ...DASHBOARDS.flatMap((dashboard) => expressions(dashboard).map((expression) => [dashboard, expression] as const)),
];

test('every metric and label of the dashboards and alerts exists', () => {
  const samples = families.flatMap((family) => family.samples);
  const names = new Set([...samples.map(({ name }) => name), ...OF_PROMETHEUS]);
  const known = new Set(samples.flatMap(({ labels }) => Object.keys(labels)));
  // Of Prometheus, and one that only failures have.
  for (const label of ['instance', 'job', 'error_type']) known.add(label);
  expect(EXPRESSIONS.length).toBeGreaterThan(60);
  for (const [file, expression] of EXPRESSIONS) {
    expect({ file, expression, unknown: series(expression).filter((name) => !names.has(name)) }).toEqual({
      file,
      expression,
      unknown: [],
    });
    expect({ file, expression, unknown: labels(expression).filter((name) => !known.has(name)) }).toEqual({
      file,
      expression,
      unknown: [],
    });
    expect(series(expression).length).toBeGreaterThan(0);
  }
});

test('every alert has a section in the runbook, and every section an alert', () => {
  const named = [...alerts.matchAll(/^ +- alert: (\w+)$/gm)].map(([, name = '']) => name);
  expect([...readFileSync(PAGE, 'utf8').matchAll(/^### (\w+)$/gm)].map(([, name]) => name)).toEqual(named);
  const runbooks = [...alerts.matchAll(/^ +runbook: (.+)$/gm)].map(([, runbook]) => runbook);
  expect(runbooks).toEqual(named.map((name) => `${PAGE}#${name.toLowerCase()}`));
});

test.runIf(hasPromtool)('promtool accepts the alerts, and every expression of the dashboards', () => {
  expect(promtool(['check', 'rules', ALERTS])).toBe('');
  const rules = EXPRESSIONS.map(([, expression], index) => ({
    record: `expression:${index}`,
    expr: expression.replaceAll('$__rate_interval', '5m'),
  }));
  // JSON is YAML.
  const file = join(mkdtempSync(join(tmpdir(), 'signpost-alerts-')), 'dashboards.yml');
  onTestFinished(() => rmSync(dirname(file), { recursive: true }));
  writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboards', rules }] }));
  expect(promtool(['check', 'rules', file])).toBe('');
});

test('the series of all stages of scans exist before a scan has reached them', () => {
  const stages = families
    .flatMap(({ samples }) => samples)
    .filter(({ name }) => name === 'signpost_scans_total')
    .map(({ labels }) => labels.signpost_scan_stage);
  expect(new Set(stages)).toEqual(new Set(['recorded', 'duplicate', 'dead_lettered']));
});

test.runIf(hasPromtool)('alerts about single events fire for the first one, which creates its series', () => {
  const internal = 'SignpostInternalErrors';
  const errors = 'rpc_server_call_duration_seconds_count{rpc_method="signpost.x/Y",error_type="INTERNAL"}';
  expect(fires(internal, errors, '_x10 1x40', 12)).toBe(true);
  expect(fires(internal, errors, '_x10 1x40', 40)).toBe(false);
  expect(fires(internal, errors, '1x30 2x20', 28)).toBe(false);
  expect(fires(internal, errors, '1x30 2x20', 33)).toBe(true);
  const deadLettered = 'SignpostScansDeadLettered';
  const scans = 'signpost_scans_total{signpost_scan_stage="dead_lettered"}';
  expect(fires(deadLettered, scans, '0x10 100x40', 12)).toBe(true);
  expect(fires(deadLettered, scans, '0x10 100x40', 40)).toBe(false);
});

test.runIf(hasPromtool)(
  'failing requests to the dashboard are no failing requests to the API, nor the other way round',
  () => {
    const [api, dashboard] = ['http_route="/api/v1/tags"', 'http_route="/rpc/:service/:method"'];
    const firing = (failing: string, working: string) => {
      const count = 'http_server_request_duration_seconds_count';
      const series = {
        [`${count}{${failing},http_response_status_code="503"}`]: '0+60x30',
        [`${count}{${working},http_response_status_code="200"}`]: '0+9000x30',
      };
      return ['SignpostApiErrors', 'SignpostDashboardErrors'].filter((alert) => firesAfter(20, alert, series));
    };
    expect(firing(api, dashboard)).toEqual(['SignpostApiErrors']);
    expect(firing(dashboard, api)).toEqual(['SignpostDashboardErrors']);
    // Of a path that nobody knows there is no route.
    expect(firing('http_request_method="GET"', api)).toEqual(['SignpostDashboardErrors']);
  },
);

test.runIf(hasPromtool)('a disk that can’t be written is noticed although the log takes all scans', () => {
  const fires = (failures: string) =>
    firesAfter(20, 'SignpostScansHeld', {
      'signpost_gateway_spool_held_bytes{instance="gateway-1:9464"}': '0x30',
      'signpost_gateway_spool_failures_total{instance="gateway-1:9464"}': failures,
    });
  expect(fires('0x10 0+60x20')).toBe(true);
  expect(fires('0x10 1x20')).toBe(false);
});

test.runIf(hasPromtool)('an alert fires for each role that no core has, and without any gateway', () => {
  const roles = {
    signpost_gateway_scans_answered_total: '0x30',
    rpc_server_call_duration_seconds_count: '1x30',
    signpost_outbox_age_seconds: '0x30',
    signpost_scans_waiting: '0x30',
    signpost_webhooks_backlog_age_seconds: '0x30',
  };
  expect(firesAfter(20, 'SignpostRoleMissing', roles)).toBe(false);
  for (const missing of Object.keys(roles)) {
    expect(firesAfter(20, 'SignpostRoleMissing', { ...roles, [missing]: '0x5 stale' })).toBe(true);
  }
});

test.runIf(hasPromtool)('an alert fires for few scans that wait, but not while any are recorded', () => {
  const recorded = 'signpost_scans_total{signpost_scan_stage="recorded"}';
  const lag = (waiting: string, counted: string) =>
    firesAfter(100, 'SignpostRecorderLag', { signpost_scans_waiting: waiting, [recorded]: counted });
  expect(lag('3x120', '50x120')).toBe(true);
  expect(lag('3x120', '50+1x120')).toBe(false);
  expect(lag('3x90 0x30', '50x120')).toBe(false);
});

test.runIf(hasPromtool)('pages of a large route table are not counted as the memory of a worker', () => {
  const fires = (files: string) =>
    firesAfter(30, 'SignpostMemoryHigh', {
      'process_memory_usage_bytes{process="worker 0"}': '2e9x40',
      'signpost_process_memory_files_bytes{process="worker 0"}': files,
    });
  expect(fires('1.8e9x40')).toBe(false);
  expect(fires('1e8x40')).toBe(true);
});

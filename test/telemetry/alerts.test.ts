import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ALERTS, EXPRESSIONS } from './expressions.ts';
import { hasPromtool, promtool } from './promtool.ts';

const PAGE = 'docs/operating/alerts.md';

const alerts = readFileSync(ALERTS, 'utf8');

/** A file with this value, until the test ends. */
function yaml(value: object): string {
  const folder = mkdtempSync(join(tmpdir(), 'signpost-alerts-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'file.yml');
  // JSON is YAML.
  writeFileSync(file, JSON.stringify(value));
  return file;
}

interface Case {
  readonly alert: string;
  /** Minutes after the series have begun. */
  readonly after: number;
  /** Their values, one a minute, in promtool's notation. */
  readonly series: Readonly<Record<string, string>>;
  readonly fires: boolean;
}

/** Checks which alerts fire; together, because promtool takes longer to start than for all of them. */
function expectAlerts(...cases: readonly Case[]): void {
  const tests = cases.map(({ alert, after, series, fires }) => ({
    interval: '1m',
    input_series: Object.entries(series).map(([series, values]) => ({ series, values })),
    promql_expr_test: [
      {
        expr: `count(ALERTS{alertname="${alert}",alertstate="firing"})`,
        eval_time: `${after}m`,
        exp_samples: fires ? [{ value: 1 }] : [],
      },
    ],
  }));
  const file = yaml({ rule_files: [resolve(ALERTS)], evaluation_interval: '1m', tests });
  expect(promtool(['test', 'rules', file])).toBe('');
}

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
  expect(promtool(['check', 'rules', yaml({ groups: [{ name: 'dashboards', rules }] })])).toBe('');
});

test.runIf(hasPromtool)('alerts about single events fire for the first one, which creates its series', () => {
  const errors = (after: number, values: string, fires: boolean): Case => {
    const series = 'rpc_server_call_duration_seconds_count{rpc_method="signpost.x/Y",error_type="INTERNAL"}';
    return { alert: 'SignpostInternalErrors', after, series: { [series]: values }, fires };
  };
  const deadLettered = (after: number, fires: boolean): Case => {
    const series = { 'signpost_scans_total{signpost_scan_stage="dead_lettered"}': '0x10 100x40' };
    return { alert: 'SignpostScansDeadLettered', after, series, fires };
  };
  expectAlerts(
    errors(12, '_x10 1x40', true),
    errors(40, '_x10 1x40', false),
    errors(28, '1x30 2x20', false),
    errors(33, '1x30 2x20', true),
    deadLettered(12, true),
    deadLettered(40, false),
  );
});

test.runIf(hasPromtool)(
  'failing requests to the dashboard are no failing requests to the API, nor the other way round',
  () => {
    const [api, dashboard] = ['http_route="/api/v1/tags"', 'http_route="/rpc/:service/:method"'];
    const alerts = ['SignpostApiErrors', 'SignpostDashboardErrors'] as const;
    const onlyFires = (firing: (typeof alerts)[number], failing: string, working: string): Case[] => {
      const count = 'http_server_request_duration_seconds_count';
      const series = {
        [`${count}{${failing},http_response_status_code="503"}`]: '0+60x30',
        [`${count}{${working},http_response_status_code="200"}`]: '0+9000x30',
      };
      return alerts.map((alert) => ({ alert, after: 20, series, fires: alert === firing }));
    };
    expectAlerts(
      ...onlyFires('SignpostApiErrors', api, dashboard),
      ...onlyFires('SignpostDashboardErrors', dashboard, api),
      // Of a path that nobody knows there is no route.
      ...onlyFires('SignpostDashboardErrors', 'http_request_method="GET"', api),
    );
  },
);

test.runIf(hasPromtool)('a disk that can’t be written is noticed although the log takes all scans', () => {
  const held = (failures: string, fires: boolean): Case => ({
    alert: 'SignpostScansHeld',
    after: 20,
    series: {
      'signpost_gateway_spool_held_bytes{instance="gateway-1:9464"}': '0x30',
      'signpost_gateway_spool_failures_total{instance="gateway-1:9464"}': failures,
    },
    fires,
  });
  expectAlerts(held('0x10 0+60x20', true), held('0x10 1x20', false));
});

test.runIf(hasPromtool)('an alert fires for each role that no core has, and without any gateway', () => {
  const roles = {
    signpost_gateway_scans_answered_total: '0x30',
    rpc_server_call_duration_seconds_count: '1x30',
    signpost_outbox_age_seconds: '0x30',
    signpost_scans_waiting: '0x30',
    signpost_webhooks_backlog_age_seconds: '0x30',
  };
  const [alert, after] = ['SignpostRoleMissing', 20];
  const missing = Object.keys(roles).map((role) => ({
    alert,
    after,
    series: { ...roles, [role]: '0x5 stale' },
    fires: true,
  }));
  expectAlerts({ alert, after, series: roles, fires: false }, ...missing);
});

test.runIf(hasPromtool)('an alert fires for few scans that wait, but not while any are recorded', () => {
  const lag = (waiting: string, recorded: string, fires: boolean): Case => ({
    alert: 'SignpostRecorderLag',
    after: 100,
    series: { signpost_scans_waiting: waiting, 'signpost_scans_total{signpost_scan_stage="recorded"}': recorded },
    fires,
  });
  expectAlerts(lag('3x120', '50x120', true), lag('3x120', '50+1x120', false), lag('3x90 0x30', '50x120', false));
});

test.runIf(hasPromtool)('pages of a large route table are not counted as the memory of a worker', () => {
  const memory = (files: string, fires: boolean): Case => ({
    alert: 'SignpostMemoryHigh',
    after: 30,
    series: {
      'process_memory_usage_bytes{process="worker 0"}': '2e9x40',
      'signpost_process_memory_files_bytes{process="worker 0"}': files,
    },
    fires,
  });
  expectAlerts(memory('1.8e9x40', false), memory('1e8x40', true));
});

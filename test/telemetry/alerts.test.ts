import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Family } from '../harness/scrape.ts';
import { startObserved } from './observed-signpost.ts';
import { hasPromtool, promtool } from './promtool.ts';

const ALERTS = 'deploy/alerts.yml';
const DASHBOARDS = globSync('deploy/grafana/*.json');

const operating = readFileSync('docs/operating.md', 'utf8');
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
    .replace(/\{[^}]*\}/g, '')
    .replace(/\b(by|without) *\([^)]*\)/g, '')
    .replace(/\[[^\]]*\]/g, '');
  return [...withoutLabels.matchAll(/(?<![\w.])[a-z_]\w*(?! *\(|\w)/g)]
    .map(([name]) => name)
    .filter((name) => !['and', 'or', 'e6'].includes(name));
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
  const [, section = ''] = /^## Alerts\n([\s\S]*?)^## /m.exec(operating) ?? [];
  expect([...section.matchAll(/^### (\w+)$/gm)].map(([, name]) => name)).toEqual(named);
  const runbooks = [...alerts.matchAll(/^ +runbook: (.+)$/gm)].map(([, runbook]) => runbook);
  expect(runbooks).toEqual(named.map((name) => `docs/operating.md#${name.toLowerCase()}`));
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

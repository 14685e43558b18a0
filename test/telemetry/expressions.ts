import { globSync, readFileSync } from 'node:fs';

export const ALERTS = 'deploy/alerts.yml';

/** Every expression of the alerts and dashboards, after the file that has it. */
export const EXPRESSIONS: readonly (readonly [file: string, expression: string])[] = [
  ...[...readFileSync(ALERTS, 'utf8').matchAll(/^ +expr: (.+)$/gm)].map(
    ([, expression = '']) => [ALERTS, expression] as const,
  ),
  ...globSync('deploy/grafana/*.json').flatMap((dashboard) =>
    expressionsOf(dashboard).map((expression) => [dashboard, expression] as const),
  ),
];

function expressionsOf(dashboard: string): string[] {
  const { panels } = JSON.parse(readFileSync(dashboard, 'utf8')) as {
    panels: { targets?: { expr: string }[] }[];
  };
  return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
}

/** Names of series in an expression: words that are no function, keyword or label. */
export function seriesIn(expression: string): string[] {
  const withoutLabels = expression
    .replace(/"[^"]*"/g, '')
    .replace(/\{[^}]*\}/g, '')
    .replace(/\b(by|without) *\([^)]*\)/g, '')
    .replace(/\[[^\]]*\]|\boffset \w+/g, '');
  return [...withoutLabels.matchAll(/(?<![\w.])[a-z_]\w*(?! *\(|\w)/g)]
    .map(([name]) => name)
    .filter((name) => !['and', 'or', 'unless', 'e6'].includes(name));
}

/** The labels that an expression names. */
export function labelsIn(expression: string): string[] {
  const matched = [...expression.matchAll(/\{([^}]*)\}/g)].flatMap(([, inner = '']) => [
    ...inner.matchAll(/(\w+) *(?:=|!)/g),
  ]);
  const grouped = [...expression.matchAll(/\bby *\(([^)]*)\)/g)].flatMap(([, inner = '']) => inner.split(','));
  return [...matched.map(([, name = '']) => name), ...grouped.map((name) => name.trim())];
}

import { PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import { emptyResource } from '@opentelemetry/resources';
import type { MetricData, ScopeMetrics } from '@opentelemetry/sdk-metrics';

/**
 * Units that Prometheus appends to names. Source: OpenTelemetry's specification, "Prometheus and OpenMetrics
 * Compatibility".
 */
const SUFFIXES: Readonly<Record<string, string>> = { s: 'seconds', By: 'bytes', '1': 'ratio' };

/** The metrics as text in Prometheus's format 0.0.4. Counters end in `_total`, and names in their unit. */
export function prometheusText(scopes: readonly ScopeMetrics[]): string {
  // The serializer warns only of conflicts that last, so it need not be the same one each time.
  const serializer = new PrometheusSerializer(undefined, false, undefined, true, true);
  const scopeMetrics = scopes.map(({ scope, metrics }) => ({ scope, metrics: metrics.map(withUnitInName) }));
  return `${serializer.serialize({ resource: emptyResource(), scopeMetrics }).trimEnd()}\n`;
}

function withUnitInName(metric: MetricData): MetricData {
  const { name, unit } = metric.descriptor;
  const suffix = SUFFIXES[unit];
  return suffix === undefined ? metric : { ...metric, descriptor: { ...metric.descriptor, name: `${name}.${suffix}` } };
}

/** The metrics with an attribute that says which process they are of. */
export function ofProcess(process: string, scopes: readonly ScopeMetrics[]): ScopeMetrics[] {
  return scopes.map(({ scope, metrics }) => ({
    scope,
    metrics: metrics.map(
      (metric) =>
        ({
          ...metric,
          dataPoints: metric.dataPoints.map((point) => ({ ...point, attributes: { ...point.attributes, process } })),
        }) as MetricData,
    ),
  }));
}

import { DiagLogLevel, diag } from '@opentelemetry/api';
import {
  defaultResource,
  envDetector,
  hostDetector,
  resourceFromAttributes,
  serviceInstanceIdDetector,
} from '@opentelemetry/resources';
import { type MetricReader, PeriodicExportingMetricReader, type PushMetricExporter } from '@opentelemetry/sdk-metrics';
import { NodeSDK } from '@opentelemetry/sdk-node';
import type { Logger } from 'pino';
import { throttledReport } from '../runtime/throttled-report.ts';
import { plainHistogramProducer } from './plain-histogram-producer.ts';

/** The shortest time between two log lines about what the SDK can't send, in ms: it tries every few seconds. */
const REPORT_MS = 60_000;

/** How often metrics are sent, and how long that may take, in ms. Source: OpenTelemetry's environment variables. */
const INTERVAL_MS = 60_000;
const TIMEOUT_MS = 30_000;

/** The exporter of metrics for each value of `OTEL_EXPORTER_OTLP_PROTOCOL`. */
const EXPORTERS: Readonly<Record<string, () => Promise<PushMetricExporter>>> = {
  grpc: async () => new (await import('@opentelemetry/exporter-metrics-otlp-grpc')).OTLPMetricExporter(),
  'http/json': async () => new (await import('@opentelemetry/exporter-metrics-otlp-http')).OTLPMetricExporter(),
  'http/protobuf': async () => new (await import('@opentelemetry/exporter-metrics-otlp-proto')).OTLPMetricExporter(),
};

/** Sends traces and metrics by OTLP as the environment says. Returns what sends the rest and stops it. */
export async function startExport(options: {
  readonly service: string;
  readonly part: string | undefined;
  /** Collects the same metrics for this process itself. */
  readonly reader: MetricReader | undefined;
  readonly logger: Logger;
}): Promise<() => Promise<void>> {
  const { service, part, reader, logger } = options;
  // It makes the SDK write text to the console.
  delete process.env.OTEL_LOG_LEVEL;
  // By default also what callers send as `baggage`, which would reach events, and Kafka's headers.
  process.env.OTEL_PROPAGATORS ||= 'tracecontext';
  const sdk = new NodeSDK({
    resource: defaultResource().merge(
      resourceFromAttributes({ 'service.name': service, ...(part !== undefined && { 'signpost.process': part }) }),
    ),
    // Not the process's own, which contains its command line.
    resourceDetectors: [hostDetector, serviceInstanceIdDetector, envDetector],
    // With `metricReaders` the SDK does not create those that the environment describes.
    metricReaders: [...(reader ? [reader] : []), ...(await otlpReaders())],
    // Logs go to standard output only.
    logRecordProcessors: [],
  });
  logDiagnostics(logger);
  sdk.start();
  return () => sdk.shutdown();
}

async function otlpReaders(): Promise<MetricReader[]> {
  const { env } = process;
  if (env.OTEL_METRICS_EXPORTER === 'none') return [];
  const protocol = env.OTEL_EXPORTER_OTLP_METRICS_PROTOCOL || env.OTEL_EXPORTER_OTLP_PROTOCOL || 'http/protobuf';
  const exporter = await (EXPORTERS[protocol] ?? EXPORTERS['http/protobuf'])?.();
  if (!exporter) return [];
  const exportIntervalMillis = Number(env.OTEL_METRIC_EXPORT_INTERVAL) || INTERVAL_MS;
  const exportTimeoutMillis = Math.min(Number(env.OTEL_METRIC_EXPORT_TIMEOUT) || TIMEOUT_MS, exportIntervalMillis);
  const metricProducers = [plainHistogramProducer];
  return [new PeriodicExportingMetricReader({ exporter, exportIntervalMillis, exportTimeoutMillis, metricProducers })];
}

/** Logs that the SDK can't send. What it says may contain the collector's address and answer, which are not logged. */
function logDiagnostics(logger: Logger): void {
  const report = throttledReport(REPORT_MS, (failures, _latest: undefined) => {
    logger.warn({ failures }, 'traces or metrics can’t be sent to the collector; they are dropped');
  });
  const failed = () => report(1, undefined);
  const ignore = () => undefined;
  const logged = { error: failed, warn: failed, info: ignore, debug: ignore, verbose: ignore };
  diag.setLogger(logged, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
}

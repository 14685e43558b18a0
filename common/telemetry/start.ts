import type { ScopeMetrics } from '@opentelemetry/sdk-metrics';
import type { Logger } from 'pino';
import { measureProcess } from './process-metrics.ts';
import { TELEMETRY_VARIABLES, type TelemetryConfig } from './variables.ts';

/** The metrics and traces of this process. */
export interface Telemetry {
  /** Whether anybody gets the metrics. */
  readonly isMeasured: boolean;
  /** The current figures of all metrics; none unless `METRICS_PORT` is set. */
  collect(): Promise<readonly ScopeMetrics[]>;
  /** Sends what the collector has not got yet, within `STOP_MS`. */
  stop(): Promise<void>;
}

export interface TelemetryOptions {
  readonly config: TelemetryConfig;
  /** The service's name unless the environment names it. */
  readonly service: string;
  /** Which process of the service this is, if it consists of several. */
  readonly part?: string;
  readonly logger: Logger;
}

/** How long metrics that are read elsewhere, such as in Postgres, may take; they are left out then, in ms. */
const COLLECT_MS = 1_500;

/** How long the last spans and metrics may take to be sent when the process stops, in ms. */
const STOP_MS = 2_000;

/**
 * Starts OpenTelemetry's SDK as configured; must be called before anything is measured. Without `METRICS_PORT` and
 * `OTEL_EXPORTER_OTLP_ENDPOINT` no package of the SDK is loaded: what sends takes 45 MB and a second on a busy machine,
 * what serves `/metrics` 25 MB and 0.1 s.
 */
export async function startTelemetry({ config, service, part, logger }: TelemetryOptions): Promise<Telemetry> {
  const served = config.METRICS_PORT !== undefined;
  const sent = config.OTEL_EXPORTER_OTLP_ENDPOINT !== undefined && config.OTEL_SDK_DISABLED !== 'true';
  if (!served && !sent) return { isMeasured: false, collect: async () => [], stop: async () => undefined };
  const reader = served ? (await import('./pull-reader.ts')).pullReader() : undefined;
  let shutdown: () => Promise<void>;
  if (sent) {
    passOnToSdk(config);
    const { startExport } = await import('./export.ts');
    shutdown = await startExport({ service, part, reader, logger });
  } else {
    const { startMetrics } = await import('./pull-reader.ts');
    shutdown = startMetrics(reader);
  }
  measureProcess();
  return {
    isMeasured: true,
    collect: async () => (await reader?.collect({ timeoutMillis: COLLECT_MS }))?.resourceMetrics.scopeMetrics ?? [],
    async stop() {
      const late = new Promise<void>((resolve) => setTimeout(resolve, STOP_MS).unref());
      await Promise.race([shutdown().catch(() => undefined), late]);
    },
  };
}

/** The SDK reads the environment and knows no `NAME_FILE`. Child processes inherit what is set here. */
function passOnToSdk(config: TelemetryConfig): void {
  for (const name of Object.keys(TELEMETRY_VARIABLES) as (keyof TelemetryConfig)[]) {
    if (!name.startsWith('OTEL_') || config[name] === undefined) continue;
    process.env[name] = String(config[name]);
    delete process.env[`${name}_FILE`];
  }
}

import { integer, optionalOneOf, optionalPort, optionalText, restricted, type Values } from '../runtime/variables.ts';

const isRatio = (value: number) => value >= 0 && value <= 1;

/**
 * The variables of metrics, health and traces, which every process has. OpenTelemetry's SDK reads those named `OTEL_…`.
 */
export const TELEMETRY_VARIABLES = {
  METRICS_PORT: {
    type: optionalPort,
    about:
      'Prometheus metrics (`/metrics`) and health (`/healthz`, `/readyz`) of the process, on `LISTEN_HOST`. Unset: off.',
  },
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    type: optionalText('an http or https address', /^https?:\/\/[^\s/]\S*$/),
    about:
      'The collector that gets traces and metrics by OTLP. OpenTelemetry’s other standard variables apply as well. ' +
      'Unset: nothing is sent.',
  },
  OTEL_EXPORTER_OTLP_PROTOCOL: {
    type: optionalOneOf(['grpc', 'http/protobuf', 'http/json']),
    about: 'The protocol of the collector. Unset: `http/protobuf`.',
  },
  OTEL_EXPORTER_OTLP_HEADERS: {
    type: optionalText('`name=value`, separated by commas'),
    about: 'Headers for the collector, such as its key.',
  },
  OTEL_SERVICE_NAME: {
    type: optionalText('a name'),
    about:
      'The service’s name in traces and metrics. Unset: `signpost-core`, `signpost-gateway` or `signpost-dashboard`.',
  },
  OTEL_RESOURCE_ATTRIBUTES: {
    type: optionalText('`name=value`, separated by commas'),
    about: 'Further attributes of the process, such as `deployment.environment.name=production`.',
  },
  OTEL_TRACES_SAMPLER: {
    type: optionalOneOf([
      'always_on',
      'always_off',
      'traceidratio',
      'parentbased_always_on',
      'parentbased_always_off',
      'parentbased_traceidratio',
    ]),
    about: 'Which traces are kept, such as `parentbased_traceidratio`. Unset: all whose caller does not say otherwise.',
  },
  OTEL_TRACES_SAMPLER_ARG: {
    type: restricted(
      optionalText('a number from 0 to 1', /\d/),
      (ratio) => ratio === undefined || isRatio(Number(ratio)),
    ),
    about: 'The ratio of that sampler.',
  },
  OTEL_METRIC_EXPORT_INTERVAL: {
    type: integer(1, 86_400_000, undefined, ''),
    about: 'How often metrics are sent to the collector, in ms. Unset: every 60 seconds.',
  },
  OTEL_SDK_DISABLED: {
    type: optionalOneOf(['true', 'false']),
    about: '`true`: nothing is sent, whatever `OTEL_EXPORTER_OTLP_ENDPOINT` says.',
  },
} as const;

export type TelemetryConfig = Values<typeof TELEMETRY_VARIABLES>;

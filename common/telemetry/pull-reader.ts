import { metrics } from '@opentelemetry/api';
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';

/** Collects metrics when it is asked to. */
class PullReader extends MetricReader {
  protected async onShutdown(): Promise<void> {}

  protected async onForceFlush(): Promise<void> {}
}

export function pullReader(): MetricReader {
  return new PullReader();
}

/** Makes the SDK measure for `reader` alone, and sends nothing. Returns what stops it. */
export function startMetrics(reader: MetricReader | undefined): () => Promise<void> {
  const provider = new MeterProvider({ readers: reader ? [reader] : [] });
  metrics.setGlobalMeterProvider(provider);
  return () => provider.shutdown();
}

import { metrics } from '@opentelemetry/api';
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import { plainHistogramProducer } from './plain-histogram-producer.ts';

/** Collects metrics when it is asked to. */
class PullReader extends MetricReader {
  protected async onShutdown(): Promise<void> {}

  protected async onForceFlush(): Promise<void> {}
}

export function pullReader(): MetricReader {
  return new PullReader({ metricProducers: [plainHistogramProducer] });
}

/** Makes the SDK measure for `reader` alone, and sends nothing. Returns what stops it. */
export function startMetrics(reader: MetricReader | undefined): () => Promise<void> {
  const provider = new MeterProvider({ readers: reader ? [reader] : [] });
  metrics.setGlobalMeterProvider(provider);
  return () => provider.shutdown();
}

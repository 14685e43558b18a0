import { type HrTime, ValueType } from '@opentelemetry/api';
import { emptyResource } from '@opentelemetry/resources';
import {
  AggregationTemporality,
  DataPointType,
  type HistogramMetricData,
  type MetricProducer,
} from '@opentelemetry/sdk-metrics';
import { type PlainHistogram, plainHistograms } from './plain-histogram.ts';

const startTime = hrTime(Date.now());

/** Passes the plain histograms to a reader of the SDK. */
export const plainHistogramProducer: MetricProducer = {
  async collect() {
    const metrics = plainHistograms.filter(({ series }) => series.size > 0).map(metricOf);
    const scopeMetrics = metrics.length === 0 ? [] : [{ scope: { name: 'signpost.plain' }, metrics }];
    return { resourceMetrics: { resource: emptyResource(), scopeMetrics }, errors: [] };
  },
};

function metricOf({ name, unit, description, attribute, boundaries, series }: PlainHistogram): HistogramMetricData {
  const endTime = hrTime(Date.now());
  return {
    descriptor: { name, unit, description, valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
    dataPointType: DataPointType.HISTOGRAM,
    dataPoints: [...series].map(([value, { counts, sum }]) => ({
      startTime,
      endTime,
      attributes: { [attribute]: value },
      value: {
        buckets: { boundaries: [...boundaries], counts: [...counts] },
        sum,
        count: counts.reduce((total, count) => total + count, 0),
      },
    })),
  };
}

function hrTime(ms: number): HrTime {
  return [Math.floor(ms / 1_000), (ms % 1_000) * 1e6];
}

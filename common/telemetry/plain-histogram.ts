/**
 * A histogram whose measurements cost 0.01 to 0.06 µs. Those of OpenTelemetry's SDK cost 0.2 to 1.4 µs, of the 17 that
 * a scan takes.
 */
export interface PlainHistogram {
  readonly name: string;
  readonly unit: string;
  readonly description: string;
  /** The attribute that measurements differ by. */
  readonly attribute: string;
  /** Upper bounds of all buckets but the last one. */
  readonly boundaries: readonly number[];
  /** By value of the attribute. */
  readonly series: Map<string, Series>;
}

export interface Series {
  /** One more than there are boundaries. */
  readonly counts: number[];
  sum: number;
}

/** The histograms of this process, which telemetry exports as any others. */
export const plainHistograms: PlainHistogram[] = [];

/** Creates a histogram; the result adds a measurement to it. */
export function plainHistogram<Value extends string>(
  options: Omit<PlainHistogram, 'series'>,
): (attribute: Value, measured: number) => void {
  const { boundaries } = options;
  const series = new Map<string, Series>();
  plainHistograms.push({ ...options, series });
  return (attribute, measured) => {
    let of = series.get(attribute);
    if (of === undefined) {
      of = { counts: new Array<number>(boundaries.length + 1).fill(0), sum: 0 };
      series.set(attribute, of);
    }
    let bucket = 0;
    while (bucket < boundaries.length && measured > (boundaries[bucket] as number)) bucket++;
    of.counts[bucket] = (of.counts[bucket] as number) + 1;
    of.sum += measured;
  };
}

import { type Histogram, metrics, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { startActiveSpan } from '../telemetry/active-span.ts';
import { durations, secondsSince } from '../telemetry/durations.ts';

const tracer = trace.getTracer('signpost.postgres');

/** Created with the first statement, as meters exist once telemetry has started. */
let duration: Histogram | undefined;

/**
 * Runs a statement in a span and measures it, named by OpenTelemetry's conventions for databases. Statements are known
 * by their names; their texts would only repeat the source, and values are in neither.
 */
export function observed<Result>(statement: string, work: () => Promise<Result>): Promise<Result> {
  duration ??= metrics
    .getMeter('signpost.postgres')
    .createHistogram('db.client.operation.duration', durations('Duration of named statements in Postgres'));
  const attributes = { 'db.system.name': 'postgresql', 'db.query.summary': statement };
  const start = performance.now();
  return startActiveSpan(tracer, statement, { kind: SpanKind.CLIENT, attributes }, async (span) => {
    let failure = {};
    try {
      return await work();
    } catch (error) {
      failure = { 'error.type': (error as { code?: string }).code ?? '_OTHER' };
      span.setAttributes(failure);
      span.setStatus({ code: SpanStatusCode.ERROR });
      throw error;
    } finally {
      duration?.record(secondsSince(start), { ...attributes, ...failure });
      span.end();
    }
  });
}

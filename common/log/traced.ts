import { context, propagation, type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Log, LogRecord } from './log.ts';

const tracer = trace.getTracer('signpost.log');

/** Wraps a log with a span for every publish and every handled batch; records carry the trace context in their headers. */
export function traced(log: Log): Log {
  const handling =
    (topic: string, handle: (records: readonly LogRecord[]) => Promise<void> | void) =>
    (records: readonly LogRecord[]): Promise<void> => {
      const parent = propagation.extract(context.active(), records[0]?.headers ?? {});
      return inSpan(`${topic} process`, SpanKind.CONSUMER, records.length, parent, async () => handle(records));
    };
  const publishing =
    (publish: Log['publish']): Log['publish'] =>
    (topic, records) =>
      inSpan(`${topic} publish`, SpanKind.PRODUCER, records.length, context.active(), () => {
        const headers: Record<string, string> = {};
        propagation.inject(context.active(), headers);
        if (Object.keys(headers).length === 0) return publish(topic, records);
        return publish(
          topic,
          records.map((record) => ({ ...record, headers: { ...headers, ...record.headers } })),
        );
      });
  return {
    ...log,
    publish: publishing(log.publish),
    async openFencedPublisher(name, over) {
      const publisher = await log.openFencedPublisher(name, over);
      return { ...publisher, publish: publishing(publisher.publish) };
    },
    consume: (options) => log.consume({ ...options, handle: handling(options.topic, options.handle) }),
    follow: (options) => log.follow({ ...options, handle: handling(options.topic, options.handle) }),
  };
}

function inSpan<Result>(
  name: string,
  kind: SpanKind,
  records: number,
  parent: ReturnType<typeof context.active>,
  work: () => Promise<Result>,
): Promise<Result> {
  const attributes = { 'messaging.batch.message_count': records };
  return tracer.startActiveSpan(name, { kind, attributes }, parent, async (span: Span) => {
    try {
      return await work();
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR });
      throw error;
    } finally {
      span.end();
    }
  });
}

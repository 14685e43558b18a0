import { context, metrics, propagation, type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { startActiveSpan } from '../telemetry/active-span.ts';
import { durations, secondsSince } from '../telemetry/durations.ts';
import type { Log, LogRecord } from './log.ts';

const tracer = trace.getTracer('signpost.log');

/** The log, as `messaging.system` of OpenTelemetry's conventions. */
export type MessagingSystem = 'kafka' | 'postgresql';

/**
 * Wraps a log with a span and metrics for every publish and every handled batch, named by OpenTelemetry's conventions
 * for messaging; records carry the trace context in their headers.
 */
export function traced(log: Log, system: MessagingSystem): Log {
  const meter = metrics.getMeter('signpost.log');
  const sent = meter.createCounter('messaging.client.sent.messages', {
    unit: '{message}',
    description: 'Records sent to the log, or tried to, by topic',
  });
  const consumed = meter.createCounter('messaging.client.consumed.messages', {
    unit: '{message}',
    description: 'Records that the log has delivered, by topic',
  });
  const sending = meter.createHistogram(
    'messaging.client.operation.duration',
    durations('Duration of sending records to the log, by topic'),
  );
  const processing = meter.createHistogram(
    'messaging.process.duration',
    durations('Duration of processing the records of a delivery, by topic'),
  );

  async function measured<Result>(
    operation: 'process' | 'send',
    topic: string,
    records: number,
    work: () => Promise<Result>,
  ): Promise<Result> {
    const attributes = {
      'messaging.system': system,
      'messaging.operation.name': operation,
      'messaging.destination.name': topic,
    };
    const start = performance.now();
    const [messages, duration] = operation === 'send' ? [sent, sending] : [consumed, processing];
    const end = (error = {}) => {
      messages.add(records, { ...attributes, ...error });
      duration.record(secondsSince(start), { ...attributes, ...error });
    };
    try {
      const result = await inSpan(operation, attributes, records, work);
      end();
      return result;
    } catch (error) {
      end({ 'error.type': errorType(error) });
      throw error;
    }
  }

  const handling =
    <More extends unknown[]>(
      topic: string,
      handle: (records: readonly LogRecord[], ...more: More) => Promise<void> | void,
    ) =>
    (records: readonly LogRecord[], ...more: More): Promise<void> => {
      const parent = propagation.extract(context.active(), records[0]?.headers ?? {});
      return context.with(parent, () =>
        measured('process', topic, records.length, async () => handle(records, ...more)),
      );
    };
  const publishing =
    (publish: Log['publish']): Log['publish'] =>
    (topic, records) =>
      measured('send', topic, records.length, () => {
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

function errorType(error: unknown): string {
  return error instanceof Error ? error.constructor.name : '_OTHER';
}

function inSpan<Result>(
  operation: 'process' | 'send',
  attributes: Readonly<Record<string, string>>,
  records: number,
  work: () => Promise<Result>,
): Promise<Result> {
  const options = {
    kind: operation === 'send' ? SpanKind.PRODUCER : SpanKind.CONSUMER,
    attributes: { ...attributes, 'messaging.operation.type': operation, 'messaging.batch.message_count': records },
  };
  const name = `${operation} ${attributes['messaging.destination.name']}`;
  return startActiveSpan(tracer, name, options, async (span: Span) => {
    try {
      return await work();
    } catch (error) {
      span.setAttribute('error.type', errorType(error));
      span.setStatus({ code: SpanStatusCode.ERROR });
      throw error;
    } finally {
      span.end();
    }
  });
}

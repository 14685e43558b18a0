/**
 * The part of an OpenTelemetry tracing SDK that tests need: loaded by `node --import`, it propagates the W3C trace
 * context between processes and prints every ended span as a line of JSON.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import {
  type Context,
  context,
  INVALID_SPAN_CONTEXT,
  propagation,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  TraceFlags,
  trace,
} from '@opentelemetry/api';

/** One printed span. */
export interface PrintedSpan {
  readonly span: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the root of a trace. */
  readonly parentId: string;
}

const storage = new AsyncLocalStorage<Context>();
context.setGlobalContextManager({
  active: () => storage.getStore() ?? ROOT_CONTEXT,
  with: (active, work, self, ...given) => storage.run(active, () => work.call(self as never, ...given)),
  bind: (active, target) =>
    typeof target === 'function'
      ? (((...given: unknown[]) => storage.run(active, () => target(...given))) as typeof target)
      : target,
  enable: () => context as never,
  disable: () => context as never,
});

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

propagation.setGlobalPropagator({
  fields: () => ['traceparent'],
  inject(active, carrier, setter) {
    const current = trace.getSpanContext(active);
    if (current) setter.set(carrier, 'traceparent', `00-${current.traceId}-${current.spanId}-01`);
  },
  extract(active, carrier, getter) {
    const [, traceId, spanId] = TRACEPARENT.exec(String(getter.get(carrier, 'traceparent') ?? '')) ?? [];
    if (traceId === undefined || spanId === undefined) return active;
    return trace.setSpanContext(active, { traceId, spanId, traceFlags: TraceFlags.SAMPLED, isRemote: true });
  },
});

function start(name: string, parent: SpanContext | undefined): Span {
  const own = {
    traceId: parent?.traceId ?? randomBytes(16).toString('hex'),
    spanId: randomBytes(8).toString('hex'),
    traceFlags: TraceFlags.SAMPLED,
  };
  const quiet = trace.wrapSpanContext(INVALID_SPAN_CONTEXT);
  return Object.assign(Object.create(quiet), {
    spanContext: () => own,
    end() {
      const printed = { span: name, traceId: own.traceId, spanId: own.spanId, parentId: parent?.spanId ?? '' };
      process.stdout.write(`${JSON.stringify(printed satisfies PrintedSpan)}\n`);
    },
  });
}

trace.setGlobalTracerProvider({
  getTracer: () => ({
    startSpan: (name, _options, active = context.active()) => start(name, trace.getSpanContext(active)),
    startActiveSpan(name: string, ...given: unknown[]) {
      const work = given.at(-1) as (span: Span) => never;
      const active = given.length > 2 ? (given[1] as Context) : context.active();
      const span = start(name, trace.getSpanContext(active));
      return context.with(trace.setSpan(active, span), work, undefined, span);
    },
  }),
});

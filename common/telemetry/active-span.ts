import {
  type Context,
  context,
  INVALID_TRACEID,
  type Span,
  type SpanOptions,
  type Tracer,
  trace,
} from '@opentelemetry/api';

/**
 * The context in which a span is the active one. While nothing records spans they are all alike, so this is `parent`: a
 * new context would be allocated in V8's old generation for every call. See
 * docs/decisions/2026-11-25-short-lived-objects.md.
 */
export function contextWith(span: Span, parent: Context): Context {
  return span.spanContext().traceId === INVALID_TRACEID ? parent : trace.setSpan(parent, span);
}

/** Runs `work` in a new span, which it must end; as the tracer's `startActiveSpan`, but with `contextWith`. */
export function startActiveSpan<Result>(
  tracer: Tracer,
  name: string,
  options: SpanOptions,
  work: (span: Span) => Result,
): Result {
  const parent = context.active();
  const span = tracer.startSpan(name, options, parent);
  return context.with(contextWith(span, parent), work, undefined, span);
}

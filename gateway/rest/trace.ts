import type { IncomingHttpHeaders } from 'node:http';
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';

const tracer = trace.getTracer('signpost.gateway');

/** Runs `work` in a span that continues the caller's trace. `work` resolves with the status of the response. */
export function withSpan(name: string, headers: IncomingHttpHeaders, work: () => Promise<number>): Promise<number> {
  const parent = propagation.extract(context.active(), headers);
  const span = tracer.startSpan(name, { kind: SpanKind.SERVER }, parent);
  return context.with(trace.setSpan(parent, span), async () => {
    try {
      const status = await work();
      span.setAttribute('http.response.status_code', status);
      if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
      return status;
    } finally {
      span.end();
    }
  });
}

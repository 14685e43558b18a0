import type { IncomingHttpHeaders } from 'node:http';
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';

const tracer = trace.getTracer('signpost.gateway');

/** Spans a request as part of the caller's trace; `work` gives the status that it was answered with. */
export function traced(name: string, headers: IncomingHttpHeaders, work: () => Promise<number>): Promise<number> {
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

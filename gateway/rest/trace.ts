import type { IncomingMessage } from 'node:http';
import { context, metrics, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { contextWith } from '../../common/telemetry/active-span.ts';
import { durations, secondsSince } from '../../common/telemetry/durations.ts';

const tracer = trace.getTracer('signpost.gateway');

/** Runs `work`, which resolves with the status of the response, in a span and measures it. `route`: of its endpoint. */
export type ObserveRequest = (route: string, request: IncomingMessage, work: () => Promise<number>) => Promise<number>;

/** Measures requests to the API, in spans that continue the caller's trace. Named by OpenTelemetry's conventions for HTTP. */
export function observeRequests(): ObserveRequest {
  const duration = metrics
    .getMeter('signpost.gateway')
    .createHistogram(
      'http.server.request.duration',
      durations('Duration of API requests, by endpoint and status; 499: the caller disconnected'),
    );
  return (route, { method = '', headers }, work) => {
    const start = performance.now();
    const attributes = { 'http.request.method': method, 'http.route': route, 'url.scheme': 'http' };
    const parent = propagation.extract(context.active(), headers);
    const span = tracer.startSpan(`${method} ${route}`, { kind: SpanKind.SERVER, attributes }, parent);
    return context.with(contextWith(span, parent), async () => {
      let status = 500;
      try {
        status = await work();
        return status;
      } finally {
        const outcome = {
          'http.response.status_code': status,
          ...(status >= 500 && { 'error.type': String(status) }),
        };
        duration.record(secondsSince(start), { ...attributes, ...outcome });
        span.setAttributes(outcome);
        if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
        span.end();
      }
    });
  };
}

import type { IncomingMessage } from 'node:http';
import { context, metrics, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { contextWith } from './active-span.ts';
import { durations, secondsSince } from './durations.ts';

/**
 * Runs `work`, which resolves with the status of the response, in a span and measures it. `route`: the pattern of the
 * path; undefined if none matches.
 */
export type ObserveRequest = (
  route: string | undefined,
  request: IncomingMessage,
  work: () => Promise<number>,
) => Promise<number>;

/**
 * Measures requests over HTTP, in spans that continue the caller's trace. Named by OpenTelemetry's conventions for
 * HTTP. `scope`: the part of Signpost that answers them.
 */
export function observeRequests(scope: string): ObserveRequest {
  const tracer = trace.getTracer(scope);
  const duration = metrics
    .getMeter(scope)
    .createHistogram(
      'http.server.request.duration',
      durations('Duration of API and dashboard requests, by route and status; 499: the caller disconnected'),
    );
  return (route, { method = '', headers }, work) => {
    const start = performance.now();
    const attributes = {
      'http.request.method': method,
      ...(route !== undefined && { 'http.route': route }),
      'url.scheme': 'http',
    };
    const parent = propagation.extract(context.active(), headers);
    const name = route === undefined ? method : `${method} ${route}`;
    const span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, parent);
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

import { Code, type Interceptor, type StreamResponse, type UnaryResponse } from '@connectrpc/connect';
import { context, propagation, type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Logger } from 'pino';
import { asFailure } from '../contract/as-failure.ts';
import { readFailure } from '../contract/errors.ts';

const tracer = trace.getTracer('signpost.core');

/**
 * Outermost: turns whatever a call throws into an error of the catalogue, logs what is our fault (the RPC libraries
 * log nothing), and spans the call from its first message to its last.
 */
export function observe(logger: Logger): Interceptor {
  return (next) => async (request) => {
    const name = `${request.service.typeName}/${request.method.name}`;
    const parent = propagation.extract(context.active(), request.header, {
      get: (headers, key) => headers.get(key) ?? undefined,
      keys: (headers) => [...headers.keys()],
    });
    const span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes: { 'rpc.method': name } }, parent);

    const failed = (error: unknown) => {
      const shown = asFailure(error);
      const { reason } = readFailure(shown);
      const tooLarge = reason === 'INTERNAL' && shown.code === Code.ResourceExhausted;
      if ((reason === 'INTERNAL' && !tooLarge) || reason === 'UNAVAILABLE') {
        const id = request.header.get('x-request-id');
        logger.error({ err: shown.cause ?? shown, method: name, request_id: id }, 'call failed');
      }
      span.setAttribute('error.type', tooLarge ? Code[shown.code] : reason);
      if (reason === 'INTERNAL' && !tooLarge) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
      return shown;
    };

    let response: UnaryResponse | StreamResponse;
    try {
      response = await context.with(trace.setSpan(parent, span), () => next(request));
    } catch (error) {
      throw failed(error);
    }
    if (response.stream) return { ...response, message: watched(response.message, span, failed) };
    span.end();
    return response;
  };
}

async function* watched<Message>(
  messages: AsyncIterable<Message>,
  span: Span,
  failed: (error: unknown) => unknown,
): AsyncGenerator<Message> {
  try {
    yield* messages;
    span.end();
  } catch (error) {
    throw failed(error);
  }
}

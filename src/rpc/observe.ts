import {
  Code,
  ConnectError,
  createContextKey,
  type HandlerContext,
  type Interceptor,
  type StreamResponse,
  type UnaryResponse,
} from '@connectrpc/connect';
import { type Context, context, propagation, type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Logger } from 'pino';
import { readFailure } from '../../common/contract/errors.ts';
import { throttledReport } from '../../common/runtime/throttled-report.ts';
import { asFailure } from '../access/as-failure.ts';
import type { Gate } from './services.ts';

const tracer = trace.getTracer('signpost.core');

/**
 * The shortest time between two log lines about calls that were answered as unavailable, in ms. While Postgres is, every
 * call is, also one with a made-up key.
 */
const UNAVAILABLE_MS = 10_000;

/** Travels from the gate to the interceptor. */
const tracedKey = createContextKey<{ readonly span: Span; readonly tracing: Context } | undefined>(undefined, {
  description: 'traced',
});

/**
 * Both turn whatever a call throws into an error of the catalogue, and log what is our fault, as the libraries log nothing:
 * every defect, and now and then that calls were unavailable.
 */
export interface Observer {
  /** Begins the span of a call, which ends when its signal aborts: answered, failed, or its caller gone. */
  readonly gate: (admit: Gate) => Gate;
  /** Outermost. */
  readonly interceptor: Interceptor;
}

/** Logs and traces calls. */
export function observe(logger: Logger): Observer {
  const logUnavailable = throttledReport(UNAVAILABLE_MS, (calls, latest: object) => {
    logger.error({ calls, ...latest }, 'calls failed because something is unavailable');
  });

  function failed(error: unknown, method: string, headers: Headers, span: Span | undefined): ConnectError {
    const shown = asFailure(error);
    const { reason } = readFailure(shown);
    // A caller that is gone, and a message that is too large, have no reason of the catalogue either.
    const defect = reason === 'INTERNAL' && shown.code === Code.Internal;
    const told = () => ({ err: shown.cause ?? shown, method, request_id: headers.get('x-request-id') });
    if (defect) logger.error(told(), 'call failed');
    else if (reason === 'UNAVAILABLE') logUnavailable(1, told());
    span?.setAttribute('error.type', reason === 'INTERNAL' ? Code[shown.code] : reason);
    if (defect) span?.setStatus({ code: SpanStatusCode.ERROR });
    return shown;
  }

  return {
    gate: (admit) => async (call) => {
      const name = nameOf(call);
      const parent = propagation.extract(context.active(), call.requestHeader, {
        get: (headers, key) => headers.get(key) ?? undefined,
        keys: (headers) => [...headers.keys()],
      });
      const span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes: { 'rpc.method': name } }, parent);
      const tracing = trace.setSpan(parent, span);
      call.values.set(tracedKey, { span, tracing });
      whenOver(call, () => span.end());
      try {
        await context.with(tracing, () => admit(call));
      } catch (error) {
        throw failed(error, name, call.requestHeader, span);
      }
    },
    interceptor: (next) => async (request) => {
      const traced = request.contextValues.get(tracedKey);
      const shown = (error: unknown) => failed(error, nameOf(request), request.header, traced?.span);
      let response: UnaryResponse | StreamResponse;
      try {
        // Nobody waits for the answer of a caller that has gone while its message was read.
        if (request.signal.aborted) throw ConnectError.from(request.signal.reason, Code.Canceled);
        response = await context.with(traced?.tracing ?? context.active(), () => next(request));
      } catch (error) {
        throw shown(error);
      }
      return response.stream ? { ...response, message: watched(response.message, shown) } : response;
    },
  };
}

function nameOf({ service, method }: Pick<HandlerContext, 'service' | 'method'>): string {
  return `${service.typeName}/${method.name}`;
}

function whenOver({ signal }: HandlerContext, end: () => void): void {
  if (signal.aborted) end();
  else signal.addEventListener('abort', end, { once: true });
}

async function* watched<Message>(
  messages: AsyncIterable<Message>,
  shown: (error: unknown) => ConnectError,
): AsyncGenerator<Message> {
  try {
    yield* messages;
  } catch (error) {
    throw shown(error);
  }
}

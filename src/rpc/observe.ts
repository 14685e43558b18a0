import {
  Code,
  ConnectError,
  createContextKey,
  type HandlerContext,
  type Interceptor,
  type StreamRequest,
  type StreamResponse,
  type UnaryRequest,
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

/** Passed from the gate to the interceptor. */
const tracedKey = createContextKey<{ readonly span: Span; readonly tracing: Context } | undefined>(undefined, {
  description: 'traced',
});

/**
 * Both convert anything that a call throws to an error of the catalogue and log internal errors, and now and then that calls
 * were unavailable: the libraries log nothing.
 */
export interface Observer {
  /** Starts the span of a call, which ends when its signal aborts: answered, failed, or its caller disconnected. */
  readonly gate: (admit: Gate) => Gate;
  /** Must be the outermost interceptor. */
  readonly interceptor: Interceptor;
}

/** Logs and traces calls. */
export function observe(logger: Logger): Observer {
  const logUnavailable = throttledReport(UNAVAILABLE_MS, (calls, latest: object) => {
    logger.error({ calls, ...latest }, 'calls failed because something is unavailable');
  });

  function toFailure(
    error: unknown,
    method: string,
    headers: Headers,
    span: Span | undefined,
    request?: UnaryRequest | StreamRequest,
  ): ConnectError {
    const converted = asFailure(error, request);
    const { reason } = readFailure(converted);
    const isInternal = reason === 'INTERNAL';
    const details = () => ({ err: converted.cause ?? converted, method, request_id: headers.get('x-request-id') });
    if (isInternal) logger.error(details(), 'call failed');
    else if (reason === 'UNAVAILABLE') logUnavailable(1, details());
    span?.setAttribute('error.type', reason);
    if (isInternal) span?.setStatus({ code: SpanStatusCode.ERROR });
    return converted;
  }

  return {
    gate: (admit) => async (call) => {
      const name = methodName(call);
      const parent = propagation.extract(context.active(), call.requestHeader, {
        get: (headers, key) => headers.get(key) ?? undefined,
        keys: (headers) => [...headers.keys()],
      });
      const span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes: { 'rpc.method': name } }, parent);
      const tracing = trace.setSpan(parent, span);
      call.values.set(tracedKey, { span, tracing });
      onceEnded(call, () => span.end());
      try {
        await context.with(tracing, () => admit(call));
      } catch (error) {
        throw toFailure(error, name, call.requestHeader, span);
      }
    },
    interceptor: (next) => async (request) => {
      const traced = request.contextValues.get(tracedKey);
      const convert = (error: unknown) => {
        const { signal, header } = request;
        // The method gave up because its caller has disconnected or its deadline has passed.
        const cause = signal.aborted && isAbortError(error) ? ConnectError.from(signal.reason, Code.Canceled) : error;
        return toFailure(cause, methodName(request), header, traced?.span, request);
      };
      let response: UnaryResponse | StreamResponse;
      try {
        // The caller disconnected while its message was read: skip the call.
        if (request.signal.aborted) throw ConnectError.from(request.signal.reason, Code.Canceled);
        response = await context.with(traced?.tracing ?? context.active(), () => next(request));
      } catch (error) {
        throw convert(error);
      }
      return response.stream ? { ...response, message: convertErrors(response.message, convert) } : response;
    },
  };
}

/** The error of Node's own functions whose signal was aborted. */
function isAbortError(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}

function methodName({ service, method }: Pick<HandlerContext, 'service' | 'method'>): string {
  return `${service.typeName}/${method.name}`;
}

function onceEnded({ signal }: HandlerContext, end: () => void): void {
  if (signal.aborted) end();
  else signal.addEventListener('abort', end, { once: true });
}

async function* convertErrors<Message>(
  messages: AsyncIterable<Message>,
  convert: (error: unknown) => ConnectError,
): AsyncGenerator<Message> {
  try {
    yield* messages;
  } catch (error) {
    throw convert(error);
  }
}

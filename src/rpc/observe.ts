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
import {
  type Attributes,
  type Context,
  context,
  metrics,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import type { Logger } from 'pino';
import { readFailure } from '../../common/contract/errors.ts';
import { methodName } from '../../common/contract/method-name.ts';
import { firstFailures } from '../../common/runtime/first-failure.ts';
import { throttledReport } from '../../common/runtime/throttled-report.ts';
import { contextWith } from '../../common/telemetry/active-span.ts';
import { durations, secondsSince } from '../../common/telemetry/durations.ts';
import { type RpcSystem, statusName } from '../../common/telemetry/rpc-status.ts';
import { asFailure } from '../calls/as-failure.ts';
import type { Gate } from './server-options.ts';

const tracer = trace.getTracer('signpost.core');

/**
 * The shortest time between two log lines about calls that were answered as unavailable, in ms. While Postgres is,
 * every call is, also one with a made-up key.
 */
const UNAVAILABLE_MS = 10_000;

/** A call in progress. */
interface TracedCall {
  readonly span: Span;
  readonly tracing: Context;
  /** Undefined until it is answered. */
  status?: 'ok' | Code;
  /** Why it failed, if that is our fault and not the caller's. */
  fault?: string;
}

/** Passed from the gate to the interceptor. */
const tracedKey = createContextKey<TracedCall | undefined>(undefined, { description: 'traced' });

/** The codes of failures that are not the caller's. Source: OpenTelemetry's conventions for gRPC, "Server". */
const FAULTS: ReadonlySet<Code> = new Set([
  Code.Unknown,
  Code.DeadlineExceeded,
  Code.Unimplemented,
  Code.Internal,
  Code.Unavailable,
  Code.DataLoss,
]);

/**
 * Both convert errors to the catalogue and log internal ones, which the libraries do not: the first of a method in a
 * minute at level 50, later ones at 40. Unavailability is logged at most every 10 s.
 */
export interface Observer {
  /** Starts the span of a call, which ends when its signal aborts: answered, failed, or its caller disconnected. */
  readonly gate: (admit: Gate) => Gate;
  /** Must be the outermost interceptor. */
  readonly interceptor: Interceptor;
}

/** Logs and traces calls. */
export function observe(logger: Logger): Observer {
  const duration = metrics
    .getMeter('signpost.core')
    .createHistogram('rpc.server.call.duration', durations('Duration of calls, by method and status'));
  const logUnavailable = throttledReport(UNAVAILABLE_MS, (calls, latest: object) => {
    logger.error({ calls, ...latest }, 'calls failed because something is unavailable');
  });

  const isFirst = firstFailures();

  function toFailure(
    error: unknown,
    method: string,
    headers: Headers,
    traced: TracedCall | undefined,
    request?: UnaryRequest | StreamRequest,
  ): ConnectError {
    const converted = asFailure(error, request);
    const { reason } = readFailure(converted);
    const isInternal = reason === 'INTERNAL';
    const details = () => ({ err: converted.cause ?? converted, method, request_id: headers.get('x-request-id') });
    if (isInternal && isFirst(method)) logger.error(details(), 'call failed');
    else if (isInternal) logger.warn(details(), 'call failed again');
    else if (reason === 'UNAVAILABLE') logUnavailable(1, details());
    if (traced) {
      traced.status = converted.code;
      if (FAULTS.has(converted.code)) traced.fault = reason;
    }
    return converted;
  }

  return {
    gate: (admit) => async (call) => {
      const name = methodName(call.method);
      const parent = propagation.extract(context.active(), call.requestHeader, {
        get: (headers, key) => headers.get(key) ?? undefined,
        keys: (headers) => [...headers.keys()],
      });
      const start = performance.now();
      const attributes = { 'rpc.system.name': systemOf(call), 'rpc.method': name };
      const span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, parent);
      const traced: TracedCall = { span, tracing: contextWith(span, parent) };
      call.values.set(tracedKey, traced);
      onceEnded(call, () => {
        const outcome = outcomeOf(traced, attributes['rpc.system.name']);
        duration.record(secondsSince(start), { ...attributes, ...outcome });
        span.setAttributes(outcome);
        if (traced.fault !== undefined) span.setStatus({ code: SpanStatusCode.ERROR });
        span.end();
      });
      try {
        await context.with(traced.tracing, () => admit(call));
      } catch (error) {
        throw toFailure(error, name, call.requestHeader, traced);
      }
    },
    interceptor: (next) => async (request) => {
      const traced = request.contextValues.get(tracedKey);
      const convert = (error: unknown) => {
        const { signal, header } = request;
        // The method gave up because its caller has disconnected or its deadline has passed.
        const cause = signal.aborted && isAbortError(error) ? ConnectError.from(signal.reason, Code.Canceled) : error;
        return toFailure(cause, methodName(request.method), header, traced, request);
      };
      let response: UnaryResponse | StreamResponse;
      try {
        // The caller disconnected while its message was read: skip the call.
        if (request.signal.aborted) throw ConnectError.from(request.signal.reason, Code.Canceled);
        response = await context.with(traced?.tracing ?? context.active(), () => next(request));
      } catch (error) {
        throw convert(error);
      }
      const answered = () => {
        if (traced) traced.status ??= 'ok';
      };
      if (response.stream) return { ...response, message: convertErrors(response.message, convert, answered) };
      answered();
      return response;
    },
  };
}

/** The error of Node's own functions whose signal was aborted. */
function isAbortError(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}

/** The RPC system of a call by OpenTelemetry's conventions, of which gRPC-Web is a form of gRPC. */
function systemOf({ protocolName }: HandlerContext): RpcSystem {
  return protocolName === 'connect' ? 'connectrpc' : 'grpc';
}

/** The attributes of a call that has ended; without an answer its caller has disconnected. */
function outcomeOf({ status = Code.Canceled, fault }: TracedCall, system: RpcSystem): Attributes {
  return {
    'rpc.response.status_code': statusName(status === 'ok' ? undefined : status, system),
    ...(fault !== undefined && { 'error.type': fault }),
  };
}

function onceEnded({ signal }: HandlerContext, end: () => void): void {
  if (signal.aborted) end();
  else signal.addEventListener('abort', end, { once: true });
}

async function* convertErrors<Message>(
  messages: AsyncIterable<Message>,
  convert: (error: unknown) => ConnectError,
  ended: () => void,
): AsyncGenerator<Message> {
  try {
    yield* messages;
    ended();
  } catch (error) {
    throw convert(error);
  }
}

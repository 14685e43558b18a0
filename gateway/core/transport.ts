import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import { MethodOptions_IdempotencyLevel as Level } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError, type Transport, type UnaryResponse } from '@connectrpc/connect';
import { context, metrics, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { readFailure } from '../../common/contract/errors.ts';
import { durations, secondsSince } from '../../common/telemetry/durations.ts';
import { codeName } from '../../common/telemetry/rpc-status.ts';
import { type Call, callUnary, canceled, NotProcessedError, type Response } from './call.ts';
import { estimateCoreClock } from './clock.ts';
import { type ConnectionOptions, connectCores } from './connections.ts';

const tracer = trace.getTracer('signpost.gateway');

/** How often a call is sent at most, if connections are closed before the core has processed it. */
const MAX_ATTEMPTS = 3;

export interface TransportOptions extends ConnectionOptions {
  /** The default timeout of a call. */
  readonly timeoutMs: number;
}

/**
 * A Connect transport that speaks gRPC; connect-node's own takes 3 times as long. It supports unary methods only; the
 * gateway calls no others. A call fails at once while no core is reachable.
 *
 * A call that changes something carries a commit deadline, so that it never takes effect after it has failed here. A
 * core that rejects it as too late sends its clock: the call is then repeated at once if there is time left.
 *
 * The gateway presents no client certificate: one that is accepted by the core would grant access to everyone who calls
 * the gateway.
 */
export function createGrpcTransport(options: TransportOptions): Transport & { close(): void } {
  const cores = connectCores(options);
  const clock = estimateCoreClock();
  const duration = metrics
    .getMeter('signpost.gateway')
    .createHistogram('rpc.client.call.duration', durations('Duration of calls to the core, by method and status'));

  /** Runs a call in a span that the core's continues, and measures it. */
  function observed<Result>(method: string, work: () => Promise<Result>): Promise<Result> {
    const start = performance.now();
    const attributes = { 'rpc.system.name': 'grpc', 'rpc.method': method };
    return tracer.startActiveSpan(method, { kind: SpanKind.CLIENT, attributes }, async (span) => {
      const end = (status: string, error = {}) => {
        const outcome = { 'rpc.response.status_code': status, ...error };
        duration.record(secondsSince(start), { ...attributes, ...outcome });
        span.setAttributes(outcome);
        span.end();
      };
      try {
        const result = await work();
        end('OK');
        return result;
      } catch (error) {
        const status = codeName(ConnectError.from(error).code);
        span.setStatus({ code: SpanStatusCode.ERROR });
        end(status, { 'error.type': status });
        throw error;
      }
    });
  }

  /** Sends a call to one core after the other until one has processed it. */
  async function sendToAny(call: Call): Promise<Response> {
    for (let attempt = 1; ; attempt++) {
      const session = cores.connected() ?? (await inTime(cores.next(), call));
      try {
        return await callUnary(session, call);
      } catch (error) {
        if (!(error instanceof NotProcessedError)) throw error;
        if (attempt === MAX_ATTEMPTS) throw error.cause;
      }
    }
  }

  async function send<Input extends DescMessage, Output extends DescMessage>(
    method: DescMethodUnary<Input, Output>,
    call: Call,
  ): Promise<UnaryResponse<Input, Output>> {
    try {
      const { header, trailer, message } = await sendToAny(call);
      clock.observe(header);
      return {
        stream: false,
        service: method.parent,
        method,
        header,
        trailer,
        message: fromBinary(method.output, message),
      };
    } catch (error) {
      if (error instanceof ConnectError) clock.observe(error.metadata);
      throw error;
    }
  }

  return {
    close: () => cores.close(),
    stream: () => Promise.reject(new ConnectError('This transport does not support streams.', Code.Unimplemented)),
    unary: (method, signal, timeoutMs, givenHeader, input) =>
      observed(`${method.parent.typeName}/${method.name}`, async () => {
        const header = withTraceContext(givenHeader);
        const call: Call = {
          path: `/${method.parent.typeName}/${method.name}`,
          header,
          message: serialize(method.input, create(method.input, input as MessageInitShape<typeof method.input>)),
          failsAt: performance.now() + (timeoutMs ?? options.timeoutMs),
          signal,
        };
        if (method.idempotency === Level.NO_SIDE_EFFECTS) return send(method, call);
        header.set('signpost-commit-by', clock.at(call.failsAt));
        return send(method, call).catch((error: unknown) => {
          if (readFailure(error).reason !== 'TOO_LATE' || performance.now() >= call.failsAt) throw error;
          header.set('signpost-commit-by', clock.at(call.failsAt));
          return send(method, call);
        });
      }),
  };
}

/** Rejects when the call is cancelled or its deadline has passed before `pending` is settled. */
async function inTime<T>(pending: Promise<T>, { failsAt, signal }: Call): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(canceled());
  const onTimeout = () => reject(new ConnectError('No core could be reached in time.', Code.DeadlineExceeded));
  const timer = setTimeout(onTimeout, failsAt - performance.now());
  signal?.addEventListener('abort', onAbort);
  if (signal?.aborted) onAbort();
  try {
    return await Promise.race([pending, promise]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  }
}

/**
 * Serializes a message, in parts. Its unknown fields, which carry the megabytes of large messages, are copied only once,
 * later: the library's writer would grow by doubling, and the cost of megabytes is touching memory for the first time.
 */
function serialize<Schema extends DescMessage>(schema: Schema, message: MessageShape<Schema>): readonly Uint8Array[] {
  const knownFields = toBinary(schema, message, { writeUnknownFields: false });
  const unknownFields = (message.$unknown ?? []).flatMap(({ no, wireType, data }) => [
    new BinaryWriter().tag(no, wireType).finish(),
    data,
  ]);
  return [knownFields, ...unknownFields];
}

/** The headers, plus the current trace context. */
function withTraceContext(given: ConstructorParameters<typeof Headers>[0]): Headers {
  const header = new Headers(given);
  propagation.inject(context.active(), header, { set: (carrier, key, value) => carrier.set(key, value) });
  return header;
}

import type { IncomingHttpHeaders } from 'node:http2';
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type DescService,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import { MethodOptions_IdempotencyLevel as Level } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError, makeAnyClient } from '@connectrpc/connect';
import { context, propagation } from '@opentelemetry/api';
import { readFailure } from '../../common/contract/errors.ts';
import { METADATA } from '../../common/contract/metadata.ts';
import { methodName } from '../../common/contract/method-name.ts';
import { observeCalls } from '../../common/telemetry/observe-calls.ts';
import { callUnary, canceled, NotProcessedError, type UnaryCall, type UnaryResponse } from './call.ts';
import { estimateCoreClock } from './clock.ts';
import { type CoreConnectionOptions, connectCores } from './connections.ts';

/** Maximum attempts of a call whose connection closes before the core processes it. */
const MAX_ATTEMPTS = 3;

export interface GrpcOptions extends CoreConnectionOptions {
  /** The default timeout of a call. */
  readonly timeoutMs: number;
}

/** Options of a call. */
export interface CallOptions {
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: that of the connections. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Called with the headers of the response. */
  onHeaders?(headers: IncomingHttpHeaders): void;
}

/** A client of a service: a function for each unary method, which rejects with a `ConnectError`. */
export type Client<Service extends DescService> = {
  readonly [Name in keyof Service['method']]: Service['method'][Name] extends DescMethodUnary<infer Input, infer Output>
    ? (request: MessageInitShape<Input>, options?: CallOptions) => Promise<MessageShape<Output>>
    : never;
};

/** Makes clients of the cores' services. */
export interface GrpcClients {
  client<Service extends DescService>(service: Service): Client<Service>;
  /** Closes the connections; pending calls fail. */
  close(): void;
}

/**
 * Clients that speak gRPC; connect-node's take 3 times as long. They support unary methods only; the gateway calls no
 * others. A call fails at once while no core is reachable.
 *
 * A call that changes something carries a commit deadline, so that it never takes effect after it has failed here. A
 * core that rejects it as too late sends its clock: the call is then repeated at once if there is time left.
 *
 * The gateway presents no client certificate: one that is accepted by the core would grant access to everyone who calls
 * the gateway.
 */
export function createGrpcClients(options: GrpcOptions): GrpcClients {
  const cores = connectCores(options);
  const clock = estimateCoreClock();
  const calls = observeCalls('signpost.gateway', 'grpc');

  /** Sends a call to one core after the other until one has processed it. */
  async function sendToAny(call: UnaryCall): Promise<UnaryResponse> {
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

  async function send<Output extends DescMessage>(
    method: DescMethodUnary<DescMessage, Output>,
    call: UnaryCall,
    onHeaders: CallOptions['onHeaders'],
  ): Promise<MessageShape<Output>> {
    try {
      const { headers, message } = await sendToAny(call);
      clock.observe(headers[METADATA.clock] as string | undefined);
      const response = fromBinary(method.output, message);
      onHeaders?.(headers);
      return response;
    } catch (error) {
      if (error instanceof ConnectError) clock.observe(error.metadata.get(METADATA.clock));
      throw error;
    }
  }

  function callMethod<Input extends DescMessage, Output extends DescMessage>(
    method: DescMethodUnary<Input, Output>,
    input: MessageInitShape<Input>,
    { headers, timeoutMs = options.timeoutMs, signal, onHeaders }: CallOptions,
  ): Promise<MessageShape<Output>> {
    const name = methodName(method);
    return calls.run(name, async () => {
      const changes = method.idempotency !== Level.NO_SIDE_EFFECTS;
      const failsAt = performance.now() + timeoutMs;
      const call: UnaryCall = {
        path: `/${name}`,
        headers: requestMetadata(headers, changes ? clock.at(failsAt) : undefined),
        message: serialize(method.input, create(method.input, input)),
        failsAt,
        signal,
      };
      if (!changes) return send(method, call, onHeaders);
      return send(method, call, onHeaders).catch((error: unknown) => {
        if (readFailure(error).reason !== 'TOO_LATE' || performance.now() >= failsAt) throw error;
        return send(method, { ...call, headers: requestMetadata(headers, clock.at(failsAt)) }, onHeaders);
      });
    });
  }

  return {
    client: (service) =>
      makeAnyClient(service, (method) => {
        if (method.methodKind !== 'unary') return null;
        return (input: MessageInitShape<DescMessage>, given: CallOptions = {}) => callMethod(method, input, given);
      }) as Client<typeof service>,
    close: () => cores.close(),
  };
}

/** Rejects when the call is cancelled or its deadline has passed before `pending` is settled. */
async function inTime<T>(pending: Promise<T>, { failsAt, signal }: UnaryCall): Promise<T> {
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
 * Serializes a message, in parts. Its unknown fields, which carry the megabytes of large messages, are copied only
 * once, later: the library's writer would grow by doubling, and the cost of megabytes is touching memory for the first
 * time.
 */
function serialize<Schema extends DescMessage>(schema: Schema, message: MessageShape<Schema>): readonly Uint8Array[] {
  const knownFields = toBinary(schema, message, { writeUnknownFields: false });
  const unknownFields = (message.$unknown ?? []).flatMap(({ no, wireType, data }) => [
    new BinaryWriter().tag(no, wireType).finish(),
    data,
  ]);
  return [knownFields, ...unknownFields];
}

/** The headers of a call, with its commit deadline and the current trace context. */
function requestMetadata(headers: CallOptions['headers'], commitBy: string | undefined): Record<string, string> {
  const metadata: Record<string, string> = { ...headers };
  if (commitBy !== undefined) metadata[METADATA.commitBy] = commitBy;
  propagation.inject(context.active(), metadata);
  return metadata;
}

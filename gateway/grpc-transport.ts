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
import { findTrailerError } from '@connectrpc/connect/protocol-grpc';
import grpc from '@grpc/grpc-js';
import { context, propagation } from '@opentelemetry/api';
import { readFailure } from '../common/contract/errors.ts';
import { headersOf } from '../common/contract/grpc-headers.ts';
import { followCoreClock } from './core-clock.ts';

/** A batch of 3,500,000 bytes of JSON, with room to spare. */
const MAX_MESSAGE_BYTES = 8 * 1024 * 1024;

const CHANNEL: grpc.ClientOptions = {
  'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
  'grpc.max_send_message_length': MAX_MESSAGE_BYTES,
  // A core whose machine vanished is given up after 15 s, not after the minutes that TCP takes.
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 5_000,
  'grpc.keepalive_permit_without_calls': 1,
  // A core that is back is found within a second; gRPC's own ceiling is two minutes.
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1_000,
  'grpc.service_config': JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }] }),
};

/**
 * A transport for typed Connect clients over grpc-js: measured 1.6 to 3 times as fast as connect-node's own. Unary
 * methods only; the gateway calls no other. A call fails at once while no address answers.
 *
 * A call that changes something says until when it may, so that it never happens once it has failed here by its
 * deadline. A core that refuses it as late tells what its clock says: while there is time, it is sent again at once.
 *
 * `addresses`: `host:port`, used in turn, as are all the DNS records of each. `timeoutMs`: the deadline of calls that
 * name none. `ca`: PEM; who signed the servers' certificates. We show none: one that opens the core would open it to
 * everybody who calls us.
 */
export function createGrpcTransport(
  addresses: readonly string[],
  timeoutMs: number,
  ca?: Buffer,
): Transport & { close(): void } {
  const credentials = ca ? grpc.credentials.createSsl(ca) : grpc.credentials.createInsecure();
  const clients = addresses.map((address) => new grpc.Client(`dns:${address}`, credentials, CHANNEL));
  const next = inTurn(clients);
  const clock = followCoreClock();

  const send: Send = (method, { signal, header, input, failsAt }) =>
    new Promise((resolve, reject) => {
      let message: MessageShape<typeof method.output> | undefined;
      let received = new Headers();
      const cancel = () => call.cancel();
      const call = next().makeUnaryRequest(
        `/${method.parent.typeName}/${method.name}`,
        (request: MessageShape<typeof method.input>) => written(method.input, request),
        (bytes) => fromBinary(method.output, bytes),
        create(method.input, input),
        metadataOf(header),
        { deadline: Date.now() + Math.max(0, failsAt - performance.now()) },
        (error, response) => {
          signal?.removeEventListener('abort', cancel);
          message = response;
          if (!error) return;
          const failed = asConnectError(error);
          clock.hear(failed.metadata);
          reject(failed);
        },
      );
      call.on('metadata', (metadata) => {
        received = headersOf(metadata);
        clock.hear(received);
      });
      // Comes after the callback, and is the only one to bring the trailers of a success.
      call.on('status', ({ metadata }) => {
        if (!message) return;
        const trailer = headersOf(metadata);
        resolve({ stream: false, service: method.parent, method, header: received, trailer, message });
      });
      signal?.addEventListener('abort', cancel);
      if (signal?.aborted) cancel();
    });

  return {
    close() {
      for (const client of clients) client.close();
    },
    stream: () => Promise.reject(new ConnectError('This transport has no streams.', Code.Unimplemented)),
    async unary(method, signal, timeout, given, input) {
      const failsAt = performance.now() + (timeout ?? timeoutMs);
      const header = new Headers(given);
      const asked = { signal, header, input, failsAt };
      if (method.idempotency === Level.NO_SIDE_EFFECTS) return send(method, asked);
      header.set('signpost-commit-by', clock.at(failsAt));
      return send(method, asked).catch((error: unknown) => {
        if (readFailure(error).reason !== 'TOO_LATE' || performance.now() >= failsAt) throw error;
        header.set('signpost-commit-by', clock.at(failsAt));
        return send(method, asked);
      });
    },
  };
}

/** Sends a call, which fails by its deadline at `failsAt` (of `performance.now()`). */
type Send = <Input extends DescMessage, Output extends DescMessage>(
  method: DescMethodUnary<Input, Output>,
  asked: {
    readonly signal: AbortSignal | undefined;
    readonly header: Headers;
    readonly input: MessageInitShape<Input>;
    readonly failsAt: number;
  },
) => Promise<UnaryResponse<Input, Output>>;

/**
 * The message as it goes over the wire. What a large one carries along unread is copied into place once: the library's
 * writer would grow by doubling, and what takes time with megabytes is memory that was never used before.
 */
function written<Schema extends DescMessage>(schema: Schema, message: MessageShape<Schema>): Buffer {
  const known = toBinary(schema, message, { writeUnknownFields: false });
  const unread = (message.$unknown ?? []).flatMap(({ no, wireType, data }) => [
    new BinaryWriter().tag(no, wireType).finish(),
    data,
  ]);
  return Buffer.concat([known, ...unread]);
}

/** Gives the clients in turn, without those that are known to have lost their core; one of them when all have. */
function inTurn(clients: readonly grpc.Client[]): () => grpc.Client {
  let turn = 0;
  return () => {
    const up = clients.filter((client) => {
      return client.getChannel().getConnectivityState(true) !== grpc.connectivityState.TRANSIENT_FAILURE;
    });
    const among = up.length > 0 ? up : clients;
    const client = among[turn++ % among.length];
    if (!client) throw new Error('the core has no address');
    return client;
  };
}

/** The error with the details and the metadata that the core gave it. */
function asConnectError(error: grpc.ServiceError): ConnectError {
  const trailers = headersOf(error.metadata);
  return findTrailerError(trailers) ?? new ConnectError(error.details, error.code as number, trailers, [], error);
}

/** The headers, and the trace that the call is part of. */
function metadataOf(header: Headers): grpc.Metadata {
  const metadata = new grpc.Metadata();
  header.forEach((value, key) => {
    metadata.set(key, value);
  });
  propagation.inject(context.active(), metadata, { set: (carrier, key, value) => carrier.set(key, value) });
  return metadata;
}

import type { DescMethod, MessageShape } from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  createContextValues,
  createHandlerContext,
  type HandlerContext,
  type Interceptor,
  type MethodImplSpec,
} from '@connectrpc/connect';
import { invokeUnaryImplementation } from '@connectrpc/connect/protocol';
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import grpc from '@grpc/grpc-js';
import { failure } from '../../common/contract/errors.ts';
import { callerKey, fairnessKey, type Peer, peerKey } from '../access/caller.ts';
import { asFailure } from '../calls/as-failure.ts';
import { untilSlotReleased } from '../calls/message-slot.ts';
import { calledPath, headersOf, takeTimeout } from './grpc-headers.ts';
import { limitOf, type MessageLimit, readingFailure } from './message-limits.ts';
import { readMessage } from './read-message.ts';
import { RECEIVE_MS, type ServerOptions } from './server-options.ts';
import { timeoutOf } from './timeouts.ts';
import { certificateName } from './tls.ts';

/**
 * The error of a unary call without a message or with several. Source: gRPC, "Status codes and their use in gRPC",
 * cardinality violations.
 */
const ONE_MESSAGE = 'A call of this method has exactly one message.';

/** The trailer that carries an error's details. */
const STATUS_DETAILS = 'grpc-status-details-bin';

export type Message = MessageShape<DescMethod['input']>;

/** An admitted call. */
export interface AdmittedCall {
  readonly context: HandlerContext & { abort(reason?: unknown): void };
  readonly limit: MessageLimit;
}

/** Abort reason of answered calls; shared, because creating an error captures its stack. */
export const ENDED = new ConnectError('The call has ended.', Code.Canceled);

/** Streaming calls, by metadata, the only object that reaches the method's handler. */
const admitted = new WeakMap<grpc.Metadata, AdmittedCall>();

/** The call with this metadata. */
export function admittedCall(metadata: grpc.Metadata): AdmittedCall {
  const call = admitted.get(metadata);
  if (!call) throw new Error('a call reached its handler without admission');
  admitted.delete(metadata);
  return call;
}

/**
 * Admits calls by their metadata, and answers the unary ones. The library receives, decompresses and passes on a
 * message only once it is asked for it, which happens after admission. Unary calls never reach a handler, for which the
 * library would make each a stream. `specs`: by path.
 */
export function callInterceptor(
  { gate, largeMessages, interceptors }: Pick<ServerOptions, 'gate' | 'largeMessages' | 'interceptors'>,
  specs: ReadonlyMap<string, MethodImplSpec>,
): grpc.ServerInterceptor {
  return ({ path, requestStream }, call) => {
    const spec = specs.get(path);
    if (!spec) {
      const onReceiveMetadata = (metadata: grpc.Metadata) =>
        call.sendStatus(toStatus(failure('UNIMPLEMENTED', `There is no method ${calledPath(metadata)}.`)));
      return new grpc.ServerInterceptingCall(call, { start: (next) => next({ onReceiveMetadata }) });
    }
    const { method } = spec;
    const limit = limitOf(method);
    convertStatuses(call, limit);
    limitMessages(call, limit.bytes);
    let context: AdmittedCall['context'];
    let timer: NodeJS.Timeout | undefined;
    /** The message of a unary call, once it has arrived. */
    let message: Buffer | undefined;

    const fail = (error: unknown) => {
      call.sendStatus(toStatus(error));
      context.abort(ENDED);
    };
    const read = (metadata: grpc.Metadata, next: (metadata: grpc.Metadata) => void) => {
      if (context.signal.aborted) return;
      if (!requestStream) {
        timer = setTimeout(() => {
          fail(failure('DEADLINE_EXCEEDED', 'The message did not arrive in time.'));
        }, RECEIVE_MS);
      }
      if (spec.kind === 'unary') return call.startRead();
      admitted.set(metadata, { context, limit });
      next(metadata);
    };
    const readQueued = (metadata: grpc.Metadata, next: (metadata: grpc.Metadata) => void) => {
      const caller = fairnessKey(context.values.get(callerKey));
      return largeMessages(caller, context.signal, () => {
        const ended = untilSlotReleased(context.values, context.signal);
        read(metadata, next);
        return ended;
      });
    };
    const listener: grpc.ServerListener = {
      onReceiveMetadata(metadata, next) {
        context = contextOf(method, path, metadata, call);
        context.signal.addEventListener('abort', () => {
          if (context.signal.reason?.code === Code.DeadlineExceeded) fail(asFailure(context.signal.reason));
        });
        gate(context)
          .then(() => (limit.isQueued ? readQueued(metadata, next) : read(metadata, next)))
          .catch(fail);
      },
      onReceiveMessage(received: Buffer, next) {
        if (spec.kind !== 'unary') return next(received);
        if (message) return fail(failure('UNIMPLEMENTED', ONE_MESSAGE));
        message = received;
        // The end of the request.
        call.startRead();
      },
      onReceiveHalfClose(next) {
        clearTimeout(timer);
        if (spec.kind !== 'unary') return next();
        if (!message) return fail(failure('UNIMPLEMENTED', ONE_MESSAGE));
        void answerUnary(call, spec, message, { context, limit }, interceptors);
      },
      // Called at the end of every call.
      onCancel() {
        clearTimeout(timer);
        if (!context.signal.aborted) context.abort(new ConnectError('The caller has disconnected.', Code.Canceled));
      },
    };
    return new grpc.ServerInterceptingCall(call, { start: (next) => next(listener) });
  };
}

async function answerUnary(
  call: grpc.ServerInterceptingCallInterface,
  spec: MethodImplSpec & { kind: 'unary' },
  message: Buffer,
  admitted: AdmittedCall,
  interceptors: Interceptor[],
): Promise<void> {
  const { context } = admitted;
  try {
    const request = await readRequest(spec.method, message, admitted);
    const response = await invokeUnaryImplementation(spec, context, request, interceptors);
    call.sendMetadata(toMetadata(context.responseHeader));
    const status = { code: grpc.status.OK, details: 'OK', metadata: toMetadata(context.responseTrailer) };
    call.sendMessage(response, () => {});
    call.sendStatus(status);
  } catch (error) {
    call.sendStatus(toStatus(error));
  } finally {
    context.abort(ENDED);
  }
}

/** Decodes a message. */
export function readRequest({ input }: DescMethod, bytes: Buffer, admitted: AdmittedCall): Promise<Message> {
  const { context, limit } = admitted;
  return readMessage(input, bytes, { values: limit.values, signal: context.signal });
}

/** The library has one limit for all methods, which each call stores in two places. */
function limitMessages(call: grpc.ServerInterceptingCallInterface, bytes: number): void {
  const base = call as unknown as { maxReceiveMessageSize: number; decoder: { maxReadMessageLength: number } };
  base.maxReceiveMessageSize = bytes;
  base.decoder.maxReadMessageLength = bytes;
}

function contextOf(
  method: DescMethod,
  path: string,
  metadata: grpc.Metadata,
  call: grpc.ServerInterceptingCallInterface,
): AdmittedCall['context'] {
  const values = createContextValues().set(peerKey, peerOf(call));
  const timeoutMs = timeoutOf('grpc-timeout', takeTimeout(metadata), values);
  return createHandlerContext({
    service: method.parent,
    method,
    protocolName: 'grpc',
    requestMethod: 'POST',
    url: `http://localhost${path}`,
    requestHeader: headersOf(metadata),
    contextValues: values,
    ...(timeoutMs === undefined ? {} : { timeoutMs: Math.max(1, timeoutMs) }),
  });
}

/** Adds the reason to statuses that the library sends by itself, such as for messages over the limit. */
function convertStatuses(call: grpc.ServerInterceptingCallInterface, limit: MessageLimit): void {
  const sendStatus = call.sendStatus.bind(call);
  // Written where it is assigned to the property, it would keep the call:
  // docs/decisions/2026-11-25-short-lived-objects.md.
  const sendCompleteStatus: typeof sendStatus = (status) => {
    const { code, details, metadata } = status;
    const complete = code === grpc.status.OK || (metadata?.get(STATUS_DETAILS).length ?? 0) > 0;
    sendStatus(complete ? status : toStatus(readingFailure(new ConnectError(details ?? '', code as number), limit)));
  };
  call.sendStatus = sendCompleteStatus;
}

/** The library exposes a certificate only if the client CA issued it, and an address as `ip:port`. */
function peerOf(call: grpc.ServerInterceptingCallInterface): Peer {
  const { sslPeerCertificate } = call.getAuthContext();
  return {
    address: call.getPeer().replace(/:\d+$/, ''),
    certificateName: sslPeerCertificate && certificateName(sslPeerCertificate),
  };
}

/** Converts headers to the library's metadata. */
export function toMetadata(headers: Headers): grpc.Metadata {
  const metadata = new grpc.Metadata();
  headers.forEach((value, key) => {
    metadata.add(key, key.endsWith('-bin') ? Buffer.from(value, 'base64') : value);
  });
  return metadata;
}

/** Converts an error to a status, with its details in `grpc-status-details-bin`, and its metadata as trailers. */
export function toStatus(error: unknown): Pick<grpc.StatusObject, 'code' | 'details' | 'metadata'> {
  const failed = ConnectError.from(error);
  const trailers = setTrailerStatus(new Headers(), failed);
  trailers.delete('grpc-status');
  trailers.delete('grpc-message');
  return { code: failed.code as number, details: failed.rawMessage, metadata: toMetadata(trailers) };
}

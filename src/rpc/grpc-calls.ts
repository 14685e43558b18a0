import type { DescMethod } from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  createContextValues,
  createHandlerContext,
  type HandlerContext,
} from '@connectrpc/connect';
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import grpc from '@grpc/grpc-js';
import { headersOf } from '../../common/contract/grpc-headers.ts';
import { callerKey, fairnessKey, type Peer, peerKey } from '../access/caller.ts';
import { limitOf, type MessageLimit } from './message-limits.ts';
import { RECEIVE_MS, type ServerOptions } from './services.ts';
import { certificateName } from './tls.ts';

/** An admitted call. */
export interface AdmittedCall {
  readonly context: HandlerContext & { abort(reason?: unknown): void };
  readonly limit: MessageLimit;
  /** Must be called once its message has been read, to admit the next large message. */
  messageRead(): void;
}

/** Abort reason of answered calls; shared, because creating an error captures its stack. */
export const ENDED = new ConnectError('The call has ended.', Code.Canceled);

/** Keyed by metadata, the only object that reaches the method's handler. */
const admitted = new WeakMap<grpc.Metadata, AdmittedCall>();

/** The call with this metadata. */
export function admittedCall(metadata: grpc.Metadata): AdmittedCall {
  const call = admitted.get(metadata);
  if (!call) throw new Error('a call reached its handler without admission');
  return call;
}

/**
 * Admits calls by their metadata. The library receives, decompresses and passes on a message only once the handler asks
 * for it, which happens when the metadata reaches the handler. `methods`: by path.
 */
export function admissionInterceptor(
  { gate, largeMessages }: Pick<ServerOptions, 'gate' | 'largeMessages'>,
  methods: ReadonlyMap<string, DescMethod>,
): grpc.ServerInterceptor {
  return ({ path, requestStream }, call) => {
    const method = methods.get(path);
    if (!method) throw new Error(`${path} is served but not registered`);
    const limit = limitOf(method);
    limitMessages(call, limit.bytes);
    let context: AdmittedCall['context'];
    let timer: NodeJS.Timeout | undefined;

    const fail = (error: unknown) => {
      const { code, details, metadata } = toStatus(error);
      call.sendStatus({ code, details, metadata });
      context.abort(ENDED);
    };
    const read = (metadata: grpc.Metadata, next: (metadata: grpc.Metadata) => void, messageRead: () => void) => {
      if (context.signal.aborted) return;
      admitted.set(metadata, { context, limit, messageRead });
      if (!requestStream) {
        timer = setTimeout(() => {
          fail(new ConnectError('The message did not arrive in time.', Code.DeadlineExceeded));
        }, RECEIVE_MS);
      }
      next(metadata);
    };
    const readQueued = (metadata: grpc.Metadata, next: (metadata: grpc.Metadata) => void) => {
      const caller = fairnessKey(context.values.get(callerKey));
      return largeMessages(caller, context.signal, () => {
        const done = Promise.withResolvers<void>();
        context.signal.addEventListener('abort', () => done.resolve(), { once: true });
        read(metadata, next, done.resolve);
        return done.promise;
      });
    };

    const listener: grpc.ServerListener = {
      onReceiveMetadata(metadata, next) {
        context = contextOf(method, path, metadata, call);
        gate(context)
          .then(() => (limit.inTurn ? readQueued(metadata, next) : read(metadata, next, () => {})))
          .catch(fail);
      },
      onReceiveMessage: (message, next) => next(message),
      onReceiveHalfClose(next) {
        clearTimeout(timer);
        next();
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
  const deadline = call.getDeadline();
  return createHandlerContext({
    service: method.parent,
    method,
    protocolName: 'grpc',
    requestMethod: 'POST',
    url: `http://localhost${path}`,
    requestHeader: headersOf(metadata),
    contextValues: createContextValues().set(peerKey, peerOf(call)),
    ...(deadline === Number.POSITIVE_INFINITY ? {} : { timeoutMs: Math.max(1, +deadline - Date.now()) }),
  });
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

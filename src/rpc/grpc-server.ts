import type { Http2Server } from 'node:http2';
import { type DescMethod, fromBinary, toBinary } from '@bufbuild/protobuf';
import { createServiceImplSpec, type Interceptor, type MethodImplSpec } from '@connectrpc/connect';
import { transformInvokeImplementation } from '@connectrpc/connect/protocol';
import grpc from '@grpc/grpc-js';
import { methodName } from '../../common/contract/method-name.ts';
import { closePort, descriptorOf } from '../../common/http/close-port.ts';
import { limitConnections, limitSessions } from './connection-limits.ts';
import {
  type AdmittedCall,
  admittedCall,
  callInterceptor,
  ENDED,
  type Message,
  readRequest,
  toMetadata,
  toStatus,
} from './grpc-calls.ts';
import { interceptHeaders, UNKNOWN_PATH } from './grpc-headers.ts';
import { MAX_MESSAGE_BYTES } from './message-limits.ts';
import { type ListeningServer, MAX_STREAMS, type ServerOptions } from './server-options.ts';
import { limitStreams, RESET_LIMITS } from './stream-limits.ts';
import type { Tls, TlsContext } from './tls.ts';

/**
 * Serves native gRPC with grpc-js: the same implementations and interceptors as on the Connect port. Measured 1.6 times
 * (unary, Connect protocol) to 3 times (gRPC) as fast as connect-node, so gateways use this port.
 */
export async function serveGrpc(options: ServerOptions): Promise<ListeningServer> {
  const specs: MethodImplSpec[] = [];
  options.register({
    service: (service, implementation) =>
      specs.push(...Object.values(createServiceImplSpec(service, implementation).methods)),
  });
  const specsByPath = new Map(specs.map((spec) => [pathOf(spec.method), spec]));
  // It would print headers that it can't read, such as a key with a foreign character.
  grpc.setLogVerbosity(grpc.logVerbosity.NONE);
  const server = new grpc.Server({
    'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
    'grpc.max_concurrent_streams': MAX_STREAMS,
    'grpc.keepalive_permit_without_calls': 1,
    // Statistics of calls and connections that nothing reads.
    'grpc.enable_channelz': 0,
    interceptors: [callInterceptor(options, specsByPath)],
  });
  // No option of the library sets these of its HTTP/2 servers.
  Object.assign((server as unknown as { commonServerOptions: object }).commonServerOptions, RESET_LIMITS);
  for (const spec of specs) {
    const { localName } = spec.method;
    server.addService(
      { [localName]: definitionOf(spec.method) },
      { [localName]: spec.kind === 'unary' ? unreached : streamHandlerOf(spec, options.interceptors) },
    );
  }
  server.register(UNKNOWN_PATH, unreached, Buffer.from, Buffer.from, 'unary');
  const port = await new Promise<number>((resolve, reject) => {
    const address = options.host.includes(':') ? `[${options.host}]` : options.host;
    server.bindAsync(`${address}:${options.port}`, credentials(options.tls), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  const { http2Servers } = server as unknown as { http2Servers: ReadonlyMap<Http2Server, unknown> };
  for (const http2 of http2Servers.keys()) {
    limitConnections(http2, options.logger);
    limitSessions(http2);
    limitStreams(http2);
    interceptHeaders(http2, new Set(specsByPath.keys()));
  }
  return {
    port,
    // Clients on HTTP/2 learn that the server stops from its GOAWAY.
    drain() {},
    async stop(graceMs) {
      await Promise.all([...http2Servers.keys()].map((http2) => closePort(http2, descriptorOf(http2), () => {})));
      return new Promise((resolve) => {
        const timer = setTimeout(() => {
          server.forceShutdown();
          // tryShutdown still waits for connections in the middle of a handshake.
          resolve();
        }, graceMs);
        server.tryShutdown(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    },
  };
}

/** As on the Connect port, callers without a certificate from the client CA are accepted as anyone. */
function credentials(tls: Tls | undefined): grpc.ServerCredentials {
  if (!tls) return grpc.ServerCredentials.createInsecure();
  const identity = ({ cert, key }: TlsContext) => ({ certificate: cert, privateKey: key });
  const authority = ({ ca }: TlsContext) => (ca ? { caCertificate: ca } : null);
  const provide = (listener: (context: TlsContext) => void) => {
    // Deferred: the library listens to its own credentials only after this call returns.
    queueMicrotask(() => listener(tls.current));
    tls.watch(listener);
  };
  const provider: grpc.experimental.CertificateProvider = {
    addIdentityCertificateListener: (listener) => provide((context) => listener(identity(context))),
    addCaCertificateListener: (listener) => provide((context) => listener(authority(context))),
    removeIdentityCertificateListener() {},
    removeCaCertificateListener() {},
  };
  // The second argument provides the client CA; the library's types and code call the two differently.
  const authorities = tls.current.ca ? provider : null;
  return grpc.experimental.createCertificateProviderServerCredentials(provider, authorities, false);
}

type AnyCall = grpc.ServerDuplexStream<Buffer, Message> | grpc.ServerWritableStream<Buffer, Message>;

function pathOf(method: DescMethod): string {
  return `/${methodName(method)}`;
}

/** Requests are passed on as bytes: the library reports any error during deserialization as an internal one. */
function definitionOf(method: DescMethod): grpc.MethodDefinition<Buffer, Message> {
  return {
    path: pathOf(method),
    requestStream: method.methodKind === 'client_streaming' || method.methodKind === 'bidi_streaming',
    responseStream: method.methodKind === 'server_streaming' || method.methodKind === 'bidi_streaming',
    requestSerialize: (bytes) => bytes,
    requestDeserialize: (bytes) => bytes,
    responseSerialize: (message) => Buffer.from(toBinary(method.output, message)),
    responseDeserialize: (bytes) => fromBinary(method.output, bytes),
  };
}

/** The handler of calls that the interceptor answers. */
function unreached(): void {}

function streamHandlerOf(
  spec: Exclude<MethodImplSpec, { kind: 'unary' }>,
  interceptors: Interceptor[],
): grpc.UntypedHandleCall {
  const streaming = async (call: AnyCall): Promise<void> => {
    const admitted = admittedCall(call.metadata);
    const { context } = admitted;
    // By default the iterator would destroy the stream when its requests end, before the responses are sent.
    const requests = 'request' in call ? [call.request] : call.iterator({ destroyOnReturn: false });
    const input = requestsOf(spec.method, requests, admitted);
    try {
      let started = false;
      const start = () => {
        if (!started) call.sendMetadata(toMetadata(context.responseHeader));
        started = true;
      };
      for await (const message of transformInvokeImplementation(spec, context, interceptors)(input)) {
        start();
        // Backpressure: a long response is never buffered in memory.
        if (!call.write(message)) await drained(call, context.signal);
      }
      start();
      call.end(toMetadata(context.responseTrailer));
    } catch (error) {
      call.emit('error', toStatus(error));
    } finally {
      context.abort(ENDED);
    }
  };
  return streaming as grpc.UntypedHandleCall;
}

async function* requestsOf(
  method: DescMethod,
  requests: AsyncIterable<Buffer> | Iterable<Buffer>,
  admitted: AdmittedCall,
): AsyncGenerator<Message> {
  for await (const bytes of requests) yield readRequest(method, bytes, admitted);
}

/** Resolves once more can be written. Rejects when the call ends, or if it has ended already. */
function drained(call: AnyCall, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const done = () => {
      call.off('drain', done);
      signal.removeEventListener('abort', done);
      if (signal.aborted) reject(signal.reason);
      else resolve();
    };
    call.once('drain', done);
    signal.addEventListener('abort', done);
  });
}

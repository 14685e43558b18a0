import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { createConnectRouter, createContextValues } from '@connectrpc/connect';
import { createAsyncIterable, type UniversalHandler, type UniversalServerRequest } from '@connectrpc/connect/protocol';
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from '@connectrpc/connect-node';
import { peerKey } from '../access/caller.ts';
import { COMPRESSIONS, handOver, receive } from './connect-body.ts';
import { MAX_MESSAGE_BYTES } from './message-limits.ts';
import { MAX_TIMEOUT_MS, type ServerOptions } from './services.ts';
import { nameOfPeer } from './tls.ts';

/** Answers requests of Node's HTTP/1.1 and HTTP/2 servers. */
export type NodeHandler = (
  request: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
) => void;

/**
 * Connect, gRPC-Web and gRPC. Does what `connectNodeAdapter` does, which leaves no place between a call's admission and
 * the reading of its message, and which throws outside of every promise on a request without a valid `Host`: one such
 * request ended the process.
 */
export function connectHandler(options: ServerOptions, shutdown: AbortSignal): NodeHandler {
  const router = createConnectRouter({
    acceptCompression: COMPRESSIONS,
    interceptors: [handOver, ...options.interceptors],
    requestGate: options.gate,
    readMaxBytes: MAX_MESSAGE_BYTES,
    maxTimeoutMs: MAX_TIMEOUT_MS,
    shutdownSignal: shutdown,
  });
  options.register(router);
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));

  return (request, response) => {
    // Without listeners, a client that disconnects while its call is answered would end the process: the library removes
    // its own when the response closes, which is before Node reports the error.
    request.on('error', () => {});
    response.on('error', () => {});
    const handler = handlers.get(request.url?.split('?', 1)[0] ?? '');
    if (!handler) return refuse(response, 404);
    let call: UniversalServerRequest;
    try {
      call = callOf(request, response, handler);
    } catch {
      return refuse(response, 400);
    }
    handler(receive(call, handler.method, options.largeMessages))
      .then((answer) => universalResponseToNodeResponse(answer, response))
      // Only what can't be written any more comes here: the caller has gone.
      .catch(() => response.destroy());
  };
}

function refuse(response: ServerResponse | Http2ServerResponse, status: number): void {
  response.statusCode = status;
  response.end();
}

/** Throws when the request's authority or query is none. */
function callOf(
  request: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
  { allowedMethods }: UniversalHandler,
): UniversalServerRequest {
  const socket = 'stream' in request ? request.stream.session?.socket : request.socket;
  const values = createContextValues().set(peerKey, nameOfPeer(socket));
  const call = universalRequestFromNodeRequest(request, response, undefined, values);
  return call.method === 'GET' && allowedMethods.includes('GET') ? asPost(call) : call;
}

/** A GET brings its message in its query. Source: Connect protocol, Unary-Get-Request. */
function asPost(call: UniversalServerRequest): UniversalServerRequest {
  const query = new URL(call.url).searchParams;
  const header = new Headers(call.header);
  header.set('content-type', `application/${query.get('encoding')}`);
  header.set('content-encoding', query.get('compression') ?? 'identity');
  header.delete('content-length');
  const message = query.get('message') ?? '';
  const bytes = query.get('base64') === '1' ? Buffer.from(message, 'base64url') : Buffer.from(message);
  return { ...call, method: 'POST', header, body: createAsyncIterable([bytes]) };
}

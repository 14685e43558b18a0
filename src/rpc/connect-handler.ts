import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { createConnectRouter, createContextValues, type HandlerContext } from '@connectrpc/connect';
import { createAsyncIterable, type UniversalHandler, type UniversalServerRequest } from '@connectrpc/connect/protocol';
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from '@connectrpc/connect-node';
import { failure } from '../../common/contract/errors.ts';
import { Health } from '../../proto/gen/grpc/health/v1/health_pb.ts';
import { peerKey } from '../access/caller.ts';
import { COMPRESSIONS, receive, substituteMessages } from './connect-body.ts';
import { allowOrigins } from './cors.ts';
import { MAX_MESSAGE_BYTES } from './message-limits.ts';
import type { ServerOptions } from './server-options.ts';
import { timeoutOf } from './timeouts.ts';
import { peerName } from './tls.ts';

/** Handles requests of Node's HTTP/1.1 and HTTP/2 servers. */
export type NodeHandler = (
  request: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
) => void;

/**
 * Handler for Connect, gRPC-Web and gRPC. Replaces `connectNodeAdapter`, which has no hook between a call's admission
 * and reading its message, and which throws outside of every promise on a request without a valid `Host`: one such
 * request ended the process.
 */
export function connectHandler(
  options: ServerOptions & { readonly corsOrigins: readonly string[] },
  shutdown: AbortSignal,
): NodeHandler {
  const corsOrigins = new Set(options.corsOrigins);
  const router = createConnectRouter({
    acceptCompression: COMPRESSIONS,
    interceptors: [substituteMessages, ...options.interceptors],
    requestGate: options.gate,
    readMaxBytes: MAX_MESSAGE_BYTES,
    shutdownSignal: shutdown,
  });
  options.register(router);
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));
  const unknown = unknownMethodHandlers();

  return (request, response) => {
    // Without these listeners a client that disconnects during its call would end the process: the library removes its
    // own listeners when the response closes, which is before Node reports the error.
    request.on('error', () => {});
    response.on('error', () => {});
    if (allowOrigins(corsOrigins, request, response)) return;
    const path = request.url?.split('?', 1)[0] ?? '';
    const handler = handlers.get(path) ?? unknown.find((each) => each.supportedContentType(contentTypeOf(request)));
    if (!handler) return reject(response, 404);
    let call: UniversalServerRequest;
    try {
      call = callOf(request, response, handler);
    } catch {
      return reject(response, 400);
    }
    handler(receive(call, handler.method, options.largeMessages))
      .then((answer) => universalResponseToNodeResponse(answer, response))
      // Only write errors arrive here: the caller has disconnected.
      .catch(() => response.destroy());
  };
}

/**
 * Handlers that reject calls to methods that do not exist, in the form of the call's protocol: the library would answer
 * a bare 404. One is for single answers, one for streams; the methods stand for any others.
 */
function unknownMethodHandlers(): readonly UniversalHandler[] {
  const requestGate = ({ url }: HandlerContext) =>
    Promise.reject(failure('UNIMPLEMENTED', `There is no method ${new URL(url).pathname}.`));
  const { check, watch } = Health.method;
  const router = createConnectRouter({ requestGate });
  return router.rpc(check, () => ({})).rpc(watch, async function* () {}).handlers;
}

function contentTypeOf(request: IncomingMessage | Http2ServerRequest): string {
  return request.headers['content-type'] ?? '';
}

function reject(response: ServerResponse | Http2ServerResponse, status: number): void {
  response.statusCode = status;
  response.end();
}

/** Throws when the request's authority or query is invalid. */
function callOf(
  request: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
  { allowedMethods }: UniversalHandler,
): UniversalServerRequest {
  const socket = 'stream' in request ? request.stream.session?.socket : request.socket;
  const values = createContextValues().set(peerKey, {
    address: socket?.remoteAddress ?? '',
    certificateName: peerName(socket),
  });
  const call = universalRequestFromNodeRequest(request, response, undefined, values);
  const grpc = /^application\/grpc/i.test(contentTypeOf(request));
  const timeoutHeader = grpc ? 'grpc-timeout' : 'connect-timeout-ms';
  if (timeoutOf(timeoutHeader, call.header.get(timeoutHeader), values) === undefined) call.header.delete(timeoutHeader);
  return call.method === 'GET' && allowedMethods.includes('GET') ? asPost(call) : call;
}

/** Converts a GET, whose message is in its query, to a POST. Source: Connect protocol, Unary-Get-Request. */
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

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ErrorBody } from './errors.ts';
import { newRequestId, requestId } from './request-id.ts';

/**
 * Answers what Node's HTTP parser turned down, in the shape of every other error: for the server's `clientError`.
 * Headers that are too large are a 400 too, so that the contract holds for an idempotency key of any length.
 */
export function answerClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const tooLarge = error.code === 'HPE_HEADER_OVERFLOW';
  answerUnreadable(socket, tooLarge ? 'The headers of the request are too large.' : undefined);
}

/** Answers on a connection that carries no request, and ends it. */
export function answerUnreadable(socket: Duplex, sentence = 'This is no HTTP request that could be read.'): void {
  const json = JSON.stringify({ error: sentence } satisfies ErrorBody);
  socket.end(
    [
      'HTTP/1.1 400 Bad Request',
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(json)}`,
      `X-Request-Id: ${newRequestId()}`,
      'Connection: close',
      '',
      json,
    ].join('\r\n'),
  );
}

/** Whether a request lacks what RFC 9112 §3.2 asks of every one in HTTP/1.1. */
export function hasNoHost({ headers, httpVersion }: IncomingMessage): boolean {
  return headers.host === undefined && httpVersion === '1.1';
}

/** Answers such a request. */
export function answerWithoutHost(request: IncomingMessage, response: ServerResponse): void {
  const json = JSON.stringify({ error: 'The request names no host: send a Host header.' } satisfies ErrorBody);
  response
    .writeHead(400, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(json),
      'x-request-id': requestId(request),
      connection: 'close',
    })
    .end(json);
}

import type { Duplex } from 'node:stream';
import type { ErrorBody } from './errors.ts';
import { newRequestId } from './request-id.ts';

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
  const body: ErrorBody = {
    error: tooLarge ? 'The headers of the request are too large.' : 'This is no HTTP request that could be read.',
  };
  const json = JSON.stringify(body);
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

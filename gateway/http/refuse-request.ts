import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ErrorBody } from './error-body.ts';
import { requestId } from './request-id.ts';

/** Rejects a parsed request and closes its connection. */
export function refuseRequest(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  sentence: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  const json = JSON.stringify({ error: sentence } satisfies ErrorBody);
  response
    .writeHead(status, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(json),
      'x-request-id': requestId(request),
      connection: 'close',
      ...headers,
    })
    .end(json);
}

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Scans } from './answer-scans.ts';
import type { Reply, ScanRequest } from './scan-request.ts';

const SCAN_PATH = /^\/r\/([0-9A-Za-z]{1,32})\/?(?:[?#]|$)/;

/** Scans that Node's own server has read. */
export interface HttpLane {
  /** Whether the request is a scan: `/r/…` on any host, and everything on a custom domain. */
  concerns(request: IncomingMessage): boolean;
  handle(request: IncomingMessage, response: ServerResponse): void;
}

export function httpLane(scans: Scans): HttpLane {
  const peerOf = (request: IncomingMessage) => request.socket.remoteAddress ?? '';
  return {
    concerns: (request) => (request.url ?? '').startsWith('/r/') || scans.ownsHost(peerOf(request), request.headers),
    handle(request, response) {
      const { method = '', headers } = request;
      const shortCode = SCAN_PATH.exec(request.url ?? '')?.[1];
      scans.answer({ method, shortCode, headers, peer: peerOf(request) } satisfies ScanRequest, replyTo(response));
    },
  };
}

/** Node sends no body in answer to a HEAD. */
function replyTo(response: ServerResponse): Reply {
  return {
    redirect(requestId, location) {
      const headers = { 'x-request-id': requestId, location, 'cache-control': 'no-store', 'content-length': '0' };
      response.writeHead(302, headers).end();
    },
    page(requestId, status, { headers, body }, more) {
      const own = { 'x-request-id': requestId, 'cache-control': 'no-store', 'content-length': String(body.length) };
      response.writeHead(status, { ...headers, ...own, ...more }).end(body);
    },
    methodNotAllowed(requestId, allow) {
      response.writeHead(405, { 'x-request-id': requestId, allow, 'content-length': '0' }).end();
    },
  };
}

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ScanHandler } from './scan-handler.ts';
import type { Reply } from './scan-request.ts';

const SCAN_PATH = /^\/r\/([0-9A-Za-z]{1,32})\/?(?:\?([^#]*))?(?:#|$)/;

/** Answers scans whose requests Node's HTTP server has parsed. */
export interface HttpLane {
  /** Whether the request is a scan: `/r/…` on any host, and everything on a custom domain. */
  matches(request: IncomingMessage): boolean;
  handle(request: IncomingMessage, response: ServerResponse): void;
}

export function httpLane(scans: ScanHandler): HttpLane {
  const peerOf = (request: IncomingMessage) => request.socket.remoteAddress ?? '';
  return {
    matches: (request) => (request.url ?? '').startsWith('/r/') || scans.ownsHost(peerOf(request), request.headers),
    handle(request, response) {
      const { method = '', headers } = request;
      const [, shortCode, query = ''] = SCAN_PATH.exec(request.url ?? '') ?? [];
      scans.answer({ method, shortCode, query, headers, peer: peerOf(request) }, replyTo(response));
    },
  };
}

/** Node itself omits the body of a response to HEAD. */
function replyTo(response: ServerResponse): Reply {
  return {
    redirect(requestId, location) {
      const headers = { 'x-request-id': requestId, location, 'cache-control': 'no-store', 'content-length': '0' };
      response.writeHead(302, headers).end();
    },
    page(requestId, status, { headers, body }, extra) {
      const common = { 'x-request-id': requestId, 'cache-control': 'no-store', 'content-length': String(body.length) };
      response.writeHead(status, { ...headers, ...common, ...extra }).end(body);
    },
    methodNotAllowed(requestId, allow) {
      response.writeHead(405, { 'x-request-id': requestId, allow, 'content-length': '0' }).end();
    },
  };
}

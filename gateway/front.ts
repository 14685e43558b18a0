import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { answerAlive } from './health.ts';
import { httpLane } from './redirect/answer/http-lane.ts';
import type { ScanHandler } from './redirect/answer/scan-handler.ts';
import { answerTlsAsk, TLS_ASK_PATH } from './redirect/answer/tls-ask.ts';
import type { RouteTable } from './redirect/routes/route-table.ts';
import { readTarget } from './request-target.ts';
import { answerClientErrors, refuseRequest } from './rest/client-error.ts';

/** What answers requests. */
export interface FrontParts {
  readonly scans: ScanHandler;
  readonly table: RouteTable;
  readonly api: { handle(request: IncomingMessage, response: ServerResponse): void };
  ready(response: ServerResponse): void;
  /** Whether each answer is the last of its connection. */
  isStopping(): boolean;
}

/** How long the headers of a request may take, and all of it, in ms, and how often Node looks for those that took longer. */
const HEADERS_MS = 15_000;
const REQUEST_MS = 60_000;
const LOOK_MS = 5_000;

/** How long a connection may be idle, in ms: longer than proxies keep theirs, so that it is they who close them. */
const KEEP_ALIVE_MS = 75_000;

/**
 * Requests of one connection that may wait for their answers. Node reads on however many there are; clients that send
 * ahead at all send a few.
 */
const MOST_AHEAD = 100;

/** Node's HTTP server in front of the REST API, scans and health. */
export function createFront({ scans, table, api, ready, isStopping }: FrontParts): Server {
  const limits = {
    headersTimeout: HEADERS_MS,
    requestTimeout: REQUEST_MS,
    connectionsCheckingInterval: LOOK_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
  };
  // Node's own answer to a request without a host has no body that a client could read.
  const server = createServer({ ...limits, requireHostHeader: false });
  // Node takes 1,000 headers by default, and the fast lane as many as fit into 16 KiB, which bound both.
  server.maxHeadersCount = 0;
  // Otherwise Node closes a connection whose client has ended its side before it has its answers.
  Object.assign(server, { httpAllowHalfOpen: true });
  const clientErrors = answerClientErrors(server);
  const scanLane = httpLane(scans);
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    clientErrors.add(response);
    if (isStopping()) response.setHeader('connection', 'close');
    const fault = readTarget(request);
    if (fault !== undefined) return refuseRequest(request, response, 400, fault);
    if (clientErrors.waiting(request.socket) > MOST_AHEAD) {
      const sentence = `At most ${MOST_AHEAD} requests of a connection may wait for their answers.`;
      return refuseRequest(request, response, 429, sentence, { 'retry-after': '1' });
    }
    if (scanLane.matches(request)) return scanLane.handle(request, response);
    if (request.url === '/healthz') return answerAlive(response);
    if (request.url === '/readyz') return ready(response);
    if (request.url?.startsWith(TLS_ASK_PATH)) return answerTlsAsk(request.url, table, response);
    api.handle(request, response);
  };
  server.on('request', answer);
  server.on('checkExpectation', answer);
  server.on('checkContinue', (request, response) => {
    // Behind an answer that is still to come, Node would put the 100 between the head and the body of this one. Such a
    // client sends the body without it after a while (RFC 9110 §10.1.1).
    if (clientErrors.waiting(request.socket) > 0) delete request.headers.expect;
    answer(request, response);
  });
  return server;
}

import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { answerClientErrors } from '../common/http/client-errors.ts';
import { KEEP_ALIVE_MS } from '../common/http/http-limits.ts';
import { watchResponse } from '../common/http/unread-responses.ts';
import { answerAlive } from './health.ts';
import type { AdmitRequest } from './http/address-limits.ts';
import type { ErrorBody } from './http/error-body.ts';
import type { CountRefusal } from './http/refusal-metrics.ts';
import { refuseRequest } from './http/refuse-request.ts';
import { newRequestId, requestId } from './http/request-id.ts';
import { normalizeRequest } from './http/request-target.ts';
import { limitUnwantedBody } from './http/unwanted-body.ts';
import { httpLane } from './redirect/answer/http-lane.ts';
import type { ScanHandler } from './redirect/answer/scan-handler.ts';
import { answerTlsAsk, TLS_ASK_PATH } from './redirect/answer/tls-ask.ts';
import type { RouteTable } from './redirect/routes/route-table.ts';

/** What requests are passed to, and what limits them. */
export interface HttpServerOptions {
  readonly scans: ScanHandler;
  readonly table: RouteTable;
  readonly api: { handle(request: IncomingMessage, response: ServerResponse): void };
  ready(response: ServerResponse): void;
  /** Timeout of a call to the core, in ms. */
  readonly coreTimeoutMs: number;
  readonly admit: AdmitRequest;
  readonly countRefusal: CountRefusal;
  /** Whether to close each connection after its response. */
  isStopping(): boolean;
}

const ALIVE_PATH = '/healthz';
const READY_PATH = '/readyz';
const CHECKS = [ALIVE_PATH, READY_PATH, TLS_ASK_PATH];

/** Timeout for the headers of a request, and how often Node enforces timeouts, in ms. */
const HEADERS_MS = 15_000;
const TIMEOUT_CHECK_MS = 5_000;

/**
 * How long a request may take to arrive in all, in addition to two calls to the core, in ms. Its headers may take 15 s;
 * until it is read, a body waits for the turn of its caller to be authenticated and for memory, 10 s each; then it may
 * take 30 s. So this limit is for what has none of its own.
 */
const REQUEST_MS = 70_000;
const CALLS = 2;

/**
 * The number of pipelined requests of one connection that may be pending. Node itself has no limit; clients that
 * pipeline at all send a few.
 */
const MAX_PIPELINED = 100;

/** Creates the HTTP server of a worker: for the REST API, health, and the scans that the fast lane hands over. */
export function createHttpServer(options: HttpServerOptions): Server {
  const { scans, table, api, ready, coreTimeoutMs, admit, countRefusal, isStopping } = options;
  const limits = {
    headersTimeout: HEADERS_MS,
    requestTimeout: CALLS * coreTimeoutMs + REQUEST_MS,
    connectionsCheckingInterval: TIMEOUT_CHECK_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
  };
  /** The response to the latest request of each connection. */
  const latest = new WeakMap<Socket, ServerResponse>();
  class Response extends ServerResponse {
    override writeHead(status: number, ...rest: unknown[]): this {
      // Responses behind one that ends the connection would not be sent.
      if (isStopping() && latest.get(this.req.socket) === this) this.setHeader('connection', 'close');
      return Reflect.apply(super.writeHead, this, [status, ...rest]);
    }
  }
  // Node's own response to a request without a host has no body to explain it.
  const server = createServer({ ...limits, requireHostHeader: false, ServerResponse: Response });
  // Node allows 1,000 headers by default, the fast lane as many as fit into 16 KiB; that size limits both.
  server.maxHeadersCount = 0;
  // Otherwise Node closes a connection whose client has closed its side before the responses are sent.
  Object.assign(server, { httpAllowHalfOpen: true });
  const clientErrors = answerClientErrors(server, {
    json: (error) => ({ error }) satisfies ErrorBody,
    headers: () => ({ 'X-Request-Id': newRequestId() }),
  });
  const scanLane = httpLane(scans);
  /** Connections that end with a refusal. */
  const ending = new WeakSet<Socket>();
  const refuse: typeof refuseRequest = (request, ...refusal) => {
    ending.add(request.socket);
    refuseRequest(request, ...refusal);
  };
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    clientErrors.add(response);
    latest.set(request.socket, response);
    limitUnwantedBody(request, response);
    // What follows a refused request must not be executed, as its response can't be sent any more.
    if (ending.has(request.socket)) return refuse(request, response, 400, 'An earlier request ended this connection.');
    const fault = normalizeRequest(request);
    if (fault !== undefined) return refuse(request, response, 400, fault);
    if (clientErrors.waiting(request.socket) > MAX_PIPELINED) {
      countRefusal('requests_ahead');
      const sentence = `Too many pipelined requests: at most ${MAX_PIPELINED} of a connection may be pending.`;
      return refuse(request, response, 429, sentence, { 'retry-after': '1' });
    }
    if (!admit(request, response)) {
      countRefusal('address_requests');
      const sentence = 'Too many requests from this address are in progress.';
      return refuse(request, response, 429, sentence, { 'retry-after': '1' });
    }
    watchResponse(response, () => {
      // Several responses may wait for one connection.
      if (!request.socket.destroyed) countRefusal('unread_answers');
      request.socket.destroy();
    });
    if (scanLane.matches(request)) return scanLane.handle(request, response);
    if (CHECKS.includes(pathOf(request))) return check(request, response);
    api.handle(request, response);
  };
  /** Answers what orchestrators and proxies ask. */
  const check = (request: IncomingMessage, response: ServerResponse) => {
    const { method = '', url = '' } = request;
    if (method !== 'GET' && method !== 'HEAD') {
      const sentence = `${method} is not supported here; use one of GET, HEAD.`;
      return refuse(request, response, 405, sentence, { allow: 'GET, HEAD' });
    }
    response.setHeader('x-request-id', requestId(request));
    const path = pathOf(request);
    if (path === ALIVE_PATH) return answerAlive(response);
    if (path === READY_PATH) return ready(response);
    answerTlsAsk(url, table, response);
  };
  server.on('request', answer);
  server.on('checkExpectation', answer);
  server.on('checkContinue', (request, response) => {
    // While an earlier response is pending, Node would write the 100 between that response's head and body. The client
    // sends the body without it after a while (RFC 9110 §10.1.1).
    if (clientErrors.waiting(request.socket) > 0) delete request.headers.expect;
    answer(request, response);
  });
  return server;
}

/** The path of a request without its query, which some probes add to get around caches. */
function pathOf({ url = '' }: IncomingMessage): string {
  return url.split('?', 1)[0] ?? '';
}

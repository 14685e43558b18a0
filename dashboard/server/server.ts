import type { Server } from 'node:http';
import { ConnectError } from '@connectrpc/connect';
import cookie from '@fastify/cookie';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { logAcceptErrors } from '../../common/http/accept-errors.ts';
import { answerClientErrors } from '../../common/http/client-errors.ts';
import { KEEP_ALIVE_MS, limitPipelining, limitUnread } from '../../common/http/http-limits.ts';
import { replaceIdle } from '../../common/http/replace-idle.ts';
import { singleFlight } from '../../common/runtime/single-flight.ts';
import { throttledReport } from '../../common/runtime/throttled-report.ts';
import { serveApp } from './app-files.ts';
import type { Core } from './core.ts';
import { discardBody } from './discard-body.ts';
import { forwardCalls } from './forward-calls.ts';
import { measureRequests } from './measure-requests.ts';
import type { OpenidProvider } from './openid-provider.ts';
import { sendPage, servePageFiles } from './pages/page.ts';
import { securityHeaders } from './security-headers.ts';
import { openSessions } from './session.ts';
import { sessionRoutes } from './session-routes.ts';
import { signInAtProvider, signInByLink } from './sign-in.ts';

/** The most bytes of a form, and of the JSON to `/session`. */
const MAX_FORM_BYTES = 16 * 1024;

/** How long a request may take to arrive, its headers and in all, in ms: a batch of 8 MiB takes 70 s at 1 Mbit/s. */
const HEADERS_MS = 15_000;
const REQUEST_MS = 120_000;

const MAX_CONNECTIONS = 5_000;
/** The shortest time between two log lines about connections beyond that, in ms. */
const REPORT_MS = 60_000;

/** Methods that change nothing. */
const SAFE = ['GET', 'HEAD', 'OPTIONS'];

/** Called by the OpenID provider, with a token of its own. */
const FROM_ELSEWHERE = ['/back-channel-logout'];

/** Composes the server. `provider`: undefined if people sign in with links only. */
export async function createServer(options: {
  dashboardUrl: string;
  publicUrl: string;
  secretKey: Buffer;
  core: Core;
  provider: OpenidProvider | undefined;
  /** Timeout of forwarded calls, in ms. */
  timeoutMs: number;
  /** Where the built pages are, if they are. */
  appFolder: string;
  /** Addresses and networks of proxies. Default: none. */
  trustedProxies?: readonly string[];
  /** Default: 5,000; browsers open six each over HTTP/1.1, proxies one for each request in progress. */
  maxConnections?: number;
  logger: Logger;
}): Promise<FastifyInstance> {
  const { dashboardUrl, publicUrl, core, provider, maxConnections = MAX_CONNECTIONS, logger } = options;
  const { trustedProxies = [] } = options;
  const headers = securityHeaders(dashboardUrl.startsWith('https:'));
  const app = Fastify({
    bodyLimit: MAX_FORM_BYTES,
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    http: { headersTimeout: HEADERS_MS },
    forceCloseConnections: 'idle',
    trustProxy: [...trustedProxies],
    // Fastify's own would add a second answer to requests that are answered before their bodies.
    clientErrorHandler() {},
    // For paths that no route can match, Fastify runs no hook.
    frameworkErrors({ statusCode = 400 }, _, reply: FastifyReply) {
      reply.code(statusCode).headers(headers).send({ error: 'The path is malformed, or too long.' });
    },
  });
  logAcceptErrors(app.server, logger);
  limitUnread(app.server);
  limitPipelining(app.server);
  const clientErrors = answerClientErrors(app.server, { json: (error) => ({ error }) });
  app.server.prependListener('request', (_request, response) => clientErrors.add(response));
  limitConnections(app.server, maxConnections, logger);
  measureRequests(app);
  endConnectionsOnClose(app);
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(headers);
    if (isAllowedOrigin(request, dashboardUrl)) return;
    discardBody(request, reply);
    if (request.url.startsWith('/sign-in')) return sendPage(request, reply, 'foreign-origin');
    return reply.code(403).send({ code: 'permission_denied', message: 'This request must come from the dashboard.' });
  });
  app.setErrorHandler<Error & { statusCode?: number }>((error, request, reply) => {
    const status = error instanceof ConnectError ? 503 : (error.statusCode ?? 500);
    // Nothing has failed if the browser gave up while an answer was sent.
    if (status >= 500 && !reply.raw.destroyed)
      logger.error({ err: error, path: request.routeOptions.url }, 'a request to the dashboard failed');
    if (status >= 500) return reply.code(503).send({ error: 'Signpost is unavailable. Try again shortly.' });
    return reply.code(status).send({ error: 'The request is malformed, or too large.' });
  });
  await app.register(cookie);
  app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) =>
    done(null, new URLSearchParams(String(body))),
  );

  app.get('/healthz', () => ({ status: 'alive' }));
  const isServing = singleFlight(core.isServing);
  app.get('/readyz', async (_, reply) => {
    const serving = await isServing();
    return reply.code(serving ? 200 : 503).send({ status: serving ? 'ready' : 'the core is unavailable' });
  });
  const sessions = openSessions(options);
  servePageFiles(app);
  sessionRoutes(app, { core, sessions, publicUrl, signIn: provider ? ['oidc'] : [] });
  signInByLink(app, { core, sessions, logger });
  if (provider) signInAtProvider(app, { ...options, provider, sessions });
  else app.get('/sign-in', (request, reply) => sendPage(request, reply, 'no-provider'));
  await app.register(async (calls) => forwardCalls(calls, { ...options, sessions }));
  await serveApp(app, options.appFolder);
  return app;
}

/** Closes connections with a request in progress after its answer; Fastify closes only those that are idle. */
function endConnectionsOnClose(app: FastifyInstance): void {
  let isClosing = false;
  app.addHook('preClose', async () => {
    isClosing = true;
    // For answers that have begun, such as streams.
    app.server.keepAliveTimeout = 1;
  });
  // An async hook would delay answers behind the errors of bodies that are not read.
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (isClosing) reply.header('connection', 'close');
    done();
  });
}

/** A connection beyond the limit replaces an idle one, and is reset if none is idle. */
function limitConnections(server: Server, most: number, logger: Logger): void {
  const connections = replaceIdle(server, { most });
  const reportReset = throttledReport(REPORT_MS, (reset) =>
    logger.warn({ connections: reset, most }, 'connections beyond the limit were closed'),
  );
  server.prependListener('connection', (socket) => {
    if (connections.admit(socket)) {
      socket.on('close', () => connections.closed(socket));
      return;
    }
    socket.resetAndDestroy();
    reportReset(1, undefined);
  });
}

/** Whether a request changes nothing, or comes from a page of the dashboard. Browsers name the origin of all others. */
function isAllowedOrigin({ method, headers, routeOptions }: FastifyRequest, dashboardUrl: string): boolean {
  if (SAFE.includes(method) || FROM_ELSEWHERE.includes(routeOptions.url ?? '')) return true;
  return headers.origin === dashboardUrl;
}

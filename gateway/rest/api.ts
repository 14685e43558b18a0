import { type IncomingMessage, METHODS, type ServerResponse } from 'node:http';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest, type HTTPMethods } from 'fastify';
import type { Logger } from 'pino';
import { BodyMemory } from '../../common/queues/body-memory.ts';
import { firstFailures } from '../../common/runtime/first-failure.ts';
import { throttledReport } from '../../common/runtime/throttled-report.ts';
import { observeRequests } from '../../common/telemetry/observe-requests.ts';
import type { ErrorBody } from '../http/error-body.ts';
import { requestId } from '../http/request-id.ts';
import type { AuthenticationAttempts } from './authentication-attempts.ts';
import { REQUEST_LIMITS, type RequestLimits } from './body/request-limits.ts';
import type { Endpoint } from './endpoint.ts';
import { describedEndpoints, type EndpointOptions } from './endpoints.ts';
import { errorResponse } from './errors.ts';
import { referenceHandler } from './reference/handler.ts';
import { serve } from './serve.ts';

/** Headers of every response: no caching, no content sniffing, no scripts. */
const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
};

/**
 * The shortest time between two log lines about requests that the core did not answer, in ms. While there is none,
 * every request is one of them, also one with a made-up key.
 */
const UNAVAILABLE_MS = 10_000;

export interface ApiOptions extends EndpointOptions {
  readonly logger: Logger;
  readonly attempts: AuthenticationAttempts;
  /** Default: `REQUEST_LIMITS`. */
  readonly limits?: Partial<RequestLimits>;
}

/** The REST API. */
export interface Api {
  /** Answers a request to `/api/…` or `/docs`; anything else is a 404. */
  handle(request: IncomingMessage, response: ServerResponse): void;
  /** Resolves when pending requests are answered. */
  close(): Promise<void>;
}

/** The REST API under `/api/v1`, and its reference under `/docs`. Source: docs/contract.md, "Endpoints". */
export async function createApi(options: ApiOptions): Promise<Api> {
  const { core, logger, attempts } = options;
  const limits = { ...REQUEST_LIMITS, ...options.limits };
  const logUnavailable = throttledReport(UNAVAILABLE_MS, (requests, latest: object) => {
    logger.error({ requests, ...latest }, 'requests failed because no core answered');
  });
  const isFirstFailure = firstFailures();
  const logFailure = (endpoint: string, fields: object) => {
    if (isFirstFailure(endpoint)) logger.error(fields, 'request failed');
    else logger.warn(fields, 'request failed again');
  };
  const serving = { core, logUnavailable, logFailure, limits, memory: new BodyMemory(limits) };
  const { endpoints, document } = describedEndpoints(options);
  const observed = observeRequests('signpost.gateway');

  const app = fastify({
    genReqId: requestId,
    requestIdHeader: false,
    // Fastify's own give a 304 a `Content-Length` of 0.
    exposeHeadRoutes: false,
    // An overlong id is an unknown id, not an unknown path.
    routerOptions: { maxParamLength: 65_536 },
    // The only such error is a path with invalid percent-encoding.
    frameworkErrors: (_error, request, reply) => {
      reply.headers({ ...HEADERS, 'x-request-id': request.id });
      notFound(request, reply);
    },
  });
  // Endpoints read bodies themselves, as JSON whatever the Content-Type.
  for (const method of METHODS) app.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  app.addHook('onRequest', async (request, reply) => {
    reply.headers({ ...HEADERS, 'x-request-id': request.id });
  });
  app.setNotFoundHandler(notFound);
  app.setErrorHandler((error, request, reply) => {
    logFailure('', { err: error, request_id: request.id });
    const { status, body } = errorResponse(error);
    reply.code(status).send(body);
  });

  for (const endpoint of endpoints) {
    app.route({
      method: endpoint.method === 'GET' ? ['GET', 'HEAD'] : endpoint.method,
      url: endpoint.path.replace('{id}', ':id'),
      async handler(request, reply) {
        // Every response to a request with a key has this header, even one without a response from the core.
        if (endpoint.idempotent && 'idempotency-key' in request.headers) reply.header('idempotent-replay', 'false');
        const attempt = attempts.begin(request.raw);
        try {
          attempt.expectAllowed();
        } catch (error) {
          const { status, headers, body } = errorResponse(error);
          // The body, if there is one, stays unread, so the connection can't be reused.
          return reply
            .code(status)
            .headers({ ...headers, connection: 'close' })
            .send(body);
        }
        await observed(endpoint.path, request.raw, () => serve(serving, endpoint, attempt, request, reply));
        return reply;
      },
    });
  }
  app.route({ method: ['GET', 'HEAD'], url: '/docs', handler: referenceHandler(document, options.publicUrl) });
  for (const [path, allowed] of methodsByPath(endpoints)) {
    refuseOtherMethods(app, path, allowed);
    // The router matches an empty id, too.
    const withoutId = path.replace('{id}', '');
    if (withoutId !== path) app.route({ method: METHODS as HTTPMethods[], url: withoutId, handler: notFound });
  }

  await app.ready();
  return {
    handle: (request, response) => app.routing(request, response),
    close: () => app.close(),
  };
}

/** How much of an unknown path its 404 shows, in characters. */
const MAX_SHOWN_PATH = 200;

function notFound({ url }: FastifyRequest, reply: FastifyReply): void {
  const path = url.split('?', 1)[0]?.slice(0, MAX_SHOWN_PATH);
  reply.code(404).send({ error: `There is no endpoint ${path}; see /docs.` } satisfies ErrorBody);
}

/** The methods of each path; HEAD wherever GET is supported. */
function methodsByPath(endpoints: readonly Endpoint[]): Map<string, string[]> {
  const methods = new Map([['/docs', ['GET', 'HEAD']]]);
  for (const { path, method } of endpoints) {
    const more = method === 'GET' ? ['GET', 'HEAD'] : [method];
    methods.set(path, [...(methods.get(path) ?? []), ...more]);
  }
  return methods;
}

/** OPTIONS returns the methods of a path; any other method is a 405. */
function refuseOtherMethods(app: FastifyInstance, path: string, allowed: readonly string[]): void {
  const url = path.replace('{id}', ':id');
  const allow = [...allowed, 'OPTIONS'].join(', ');
  app.options(url, (_request, reply) => reply.code(204).header('allow', allow).send());
  const others = METHODS.filter((method) => method !== 'OPTIONS' && !allowed.includes(method)) as HTTPMethods[];
  app.route({
    method: others,
    url,
    handler: (request, reply) => {
      const body: ErrorBody = { error: `${request.method} is not supported here; use one of ${allow}.` };
      reply.code(405).header('allow', allow).send(body);
    },
  });
}

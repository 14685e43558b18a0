import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { cors } from '@connectrpc/connect';
import { METADATA } from '../../common/contract/metadata.ts';

/** Headers of Signpost's own that a page may send and read, besides those of the protocols. */
const SENT = [
  'authorization',
  METADATA.idempotencyKey,
  METADATA.account,
  METADATA.actor,
  METADATA.commitBy,
  METADATA.member,
  'traceparent',
  'tracestate',
  'x-request-id',
];
const READ = [METADATA.replay, METADATA.rateLimit, METADATA.rateRemaining, METADATA.rateReset, METADATA.clock];

/** How long browsers may remember the response to a preflight request, in seconds: the longest that Chromium does. */
const MAX_AGE_S = 7_200;

/**
 * Lets pages of the configured origins call this port from browsers (WHATWG Fetch, "CORS protocol"). Returns whether
 * the request was a preflight, which is then answered. Credentials are never allowed: tokens travel in `authorization`,
 * which a page sets itself, and cookies mean nothing here.
 */
export function allowOrigins(
  origins: ReadonlySet<string>,
  { method, headers }: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
): boolean {
  if (origins.size === 0) return false;
  response.setHeader('vary', 'origin');
  const { origin = '' } = headers;
  if (!origins.has(origin)) return false;
  response.setHeader('access-control-allow-origin', origin);
  if (method !== 'OPTIONS' || headers['access-control-request-method'] === undefined) {
    response.setHeader('access-control-expose-headers', [...cors.exposedHeaders, ...READ].join(', '));
    return false;
  }
  response.setHeader('access-control-allow-methods', cors.allowedMethods.join(', '));
  response.setHeader('access-control-allow-headers', [...cors.allowedHeaders, ...SENT].join(', '));
  response.setHeader('access-control-max-age', String(MAX_AGE_S));
  response.statusCode = 204;
  response.end();
  return true;
}

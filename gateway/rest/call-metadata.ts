import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { bearerToken, invalidApiKey, looksLikeApiKey, missingApiKey } from '../../common/contract/api-key.ts';
import { METADATA } from '../../common/contract/metadata.ts';
import type { CallOptions } from '../core/transport.ts';
import type { Endpoint } from './endpoint.ts';

/** Sent in place of an idempotency key that metadata can't carry. The core rejects it, because it contains spaces. */
const UNSENDABLE_KEY = 'not visible ASCII';

/** Values that gRPC metadata can carry. */
const SENDABLE = /^[\x20-\x7e]*$/;

/**
 * The metadata of the call for a request, without the caller's credentials: the request id, what the core records of
 * the request, and the idempotency key.
 */
export function callMetadata(endpoint: Endpoint, { id, method, headers }: FastifyRequest): Record<string, string> {
  const [status] = Object.keys(endpoint.success);
  const metadata: Record<string, string> = {
    'x-request-id': id,
    [METADATA.request]: `${method} ${endpoint.path} ${status}`,
  };
  const key = headers['idempotency-key'];
  if (endpoint.idempotent && typeof key === 'string') {
    metadata[METADATA.idempotencyKey] = SENDABLE.test(key) ? key : UNSENDABLE_KEY;
  }
  return metadata;
}

/** The options of a call for a request that is answered with this status, if it succeeds. */
export function recordedAs(status: number, options: CallOptions): CallOptions {
  const request = options.headers?.[METADATA.request] ?? '';
  return { ...options, headers: { ...options.headers, [METADATA.request]: request.replace(/\d+$/, `${status}`) } };
}

/**
 * The `authorization` of the call. Throws UNAUTHENTICATED unless the request has a token in the format of an API key,
 * so that anything else, including the service token, is rejected here without a call to the core.
 */
export function callAuthorization({ authorization }: IncomingHttpHeaders): string {
  const token = bearerToken(authorization);
  if (token === undefined) throw missingApiKey();
  if (!looksLikeApiKey(token)) throw invalidApiKey();
  return `Bearer ${token}`;
}

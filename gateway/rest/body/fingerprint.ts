import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';

/**
 * Identifies a request: retries with an idempotency key must have the same one. Source: docs/contract.md,
 * "Idempotency".
 */
export function fingerprint({ method, url }: Pick<FastifyRequest, 'method' | 'url'>, body: Buffer): string {
  const path = url.split('?', 1)[0];
  return createHash('sha256').update(`${method} ${path}\n`).update(body).digest('base64url');
}

import { expect } from 'vitest';
import { type Attempt, RETRY_AFTER_S } from './faulty-proxy.ts';

/** All operations of the REST API. */
const OPERATIONS = [
  'GET /qr-codes',
  'POST /qr-codes',
  'GET /qr-codes/{id}',
  'PATCH /qr-codes/{id}',
  'DELETE /qr-codes/{id}',
  'GET /qr-codes/{id}/analytics',
  'GET /qr-codes/{id}/image',
  'GET /batches',
  'POST /batches',
  'GET /batches/{id}',
  'GET /folders',
  'GET /tags',
  'GET /openapi',
];

/**
 * Expects that a client used every operation, repeated each failed request unchanged, with the idempotency key of its
 * first attempt if it creates something, and not before `Retry-After`.
 */
export function expectRetried(attempts: readonly Attempt[]): void {
  expect([...new Set(attempts.map(({ operation }) => operation))].sort()).toEqual([...OPERATIONS].sort());
  for (const [index, { operation, fault, digest, idempotencyKey, at }] of attempts.entries()) {
    if (operation.startsWith('POST ')) expect(idempotencyKey).toMatch(/^[!-~]{1,255}$/);
    if (fault === undefined) continue;
    const repetition = attempts.slice(index + 1).find((each) => each.digest === digest);
    expect([operation, fault, repetition?.idempotencyKey]).toEqual([operation, fault, idempotencyKey]);
    const leastMs = fault === 'unavailable' || fault === 'too fast' ? RETRY_AFTER_S * 1_000 : 0;
    expect((repetition?.at ?? 0) - at).toBeGreaterThanOrEqual(leastMs);
  }
}

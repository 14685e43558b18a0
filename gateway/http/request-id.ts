import { randomUUIDv7 } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { usableRequestId } from '../../common/contract/request-id.ts';

/** The caller's `X-Request-Id` if it is 1–128 visible ASCII characters, else a new one. */
export function requestId({ headers }: IncomingMessage): string {
  return usableRequestId(headers['x-request-id']) ?? newRequestId();
}

/** A new request id. */
export function newRequestId(): string {
  return randomUUIDv7();
}

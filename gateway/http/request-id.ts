import { randomUUIDv7 } from 'node:crypto';
import { usableRequestId } from '../../common/contract/request-id.ts';

/** The caller's `X-Request-Id` if it is 1–128 visible ASCII characters, else a new one. */
export function requestId({ headers }: { readonly headers: { readonly [name: string]: unknown } }): string {
  return usableRequestId(headers['x-request-id']) ?? newRequestId();
}

/** A new request id. */
export function newRequestId(): string {
  return randomUUIDv7();
}

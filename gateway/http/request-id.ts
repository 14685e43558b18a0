import { randomUUIDv7 } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

const USABLE = /^[\x21-\x7e]{1,128}$/;

/** The caller's `X-Request-Id` if it is 1–128 visible ASCII characters, else a new one. */
export function requestId({ headers }: IncomingMessage): string {
  return usableRequestId(headers) ?? newRequestId();
}

/** The caller's `X-Request-Id` if it is valid. */
export function usableRequestId(headers: { readonly [name: string]: unknown }): string | undefined {
  const given = headers['x-request-id'];
  return typeof given === 'string' && USABLE.test(given) ? given : undefined;
}

/** A new request id. */
export function newRequestId(): string {
  return randomUUIDv7();
}

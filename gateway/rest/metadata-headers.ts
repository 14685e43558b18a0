import { METADATA } from '../../common/contract/metadata.ts';

/** Response headers by the core's response metadata. */
const HEADERS_BY_METADATA = Object.entries({
  [METADATA.rateLimit]: 'x-ratelimit-limit',
  [METADATA.rateRemaining]: 'x-ratelimit-remaining',
  [METADATA.rateReset]: 'x-ratelimit-reset',
  [METADATA.replay]: 'idempotent-replay',
});

/**
 * The headers of the monthly quota, on every authenticated response, and whether a response is a replay.
 * `metadata`: reads the response's metadata. Source: docs/contract.md, "Limits" and "Idempotency".
 */
export function metadataHeaders(
  metadata: (name: string) => string | string[] | null | undefined,
): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [key, name] of HEADERS_BY_METADATA) {
    const value = metadata(key);
    if (typeof value === 'string') headers[name] = value;
  }
  return headers;
}

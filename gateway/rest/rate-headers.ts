/** Response headers by the core's response metadata. */
const HEADER_BY_METADATA = {
  'ratelimit-limit': 'x-ratelimit-limit',
  'ratelimit-remaining': 'x-ratelimit-remaining',
  'ratelimit-reset': 'x-ratelimit-reset',
  'idempotent-replay': 'idempotent-replay',
} as const;

/**
 * The headers of the monthly quota, on every authenticated response, and whether a response is a replay.
 * Source: docs/contract.md, "Who may call".
 */
export function rateHeaders(metadata: Headers): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [key, name] of Object.entries(HEADER_BY_METADATA)) {
    const value = metadata.get(key);
    if (value !== null) headers[name] = value;
  }
  return headers;
}

/** Response metadata of the core, and the header that shows it. */
const SHOWN = {
  'ratelimit-limit': 'x-ratelimit-limit',
  'ratelimit-remaining': 'x-ratelimit-remaining',
  'ratelimit-reset': 'x-ratelimit-reset',
  'idempotent-replay': 'idempotent-replay',
} as const;

/**
 * The headers that tell of the month's quota, on every authenticated answer, and whether an answer is a replay.
 * Source: Cross-cutting rules; docs/contract.md, "Who may call".
 */
export function rateHeaders(metadata: Headers): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [key, name] of Object.entries(SHOWN)) {
    const value = metadata.get(key);
    if (value !== null) headers[name] = value;
  }
  return headers;
}

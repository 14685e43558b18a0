import { hash, timingSafeEqual } from 'node:crypto';

/** The tokens of internal callers: one, or two during rotation. */
export interface ServiceTokens {
  /** Whether this is one of them, in constant time. */
  has(token: string): boolean;
}

/** Hashes tokens, so that tokens of any length can be compared in constant time. */
export function serviceTokens(tokens: readonly string[]): ServiceTokens {
  const digests = tokens.map(digest);
  return {
    has: (token) => {
      const given = digest(token);
      return digests.map((known) => timingSafeEqual(known, given)).includes(true);
    },
  };
}

function digest(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}

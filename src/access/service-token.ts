import { createHash, timingSafeEqual } from 'node:crypto';

/** The tokens of internal callers: one, or two while they are being rotated. */
export interface ServiceTokens {
  /** Whether this is one of them; takes the same time whatever is wrong with it. */
  has(token: string): boolean;
}

/** `tokens`: comma-separated. Hashing makes tokens of any length comparable in constant time. */
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
  return createHash('sha256').update(token).digest();
}

import { hash, randomBytes } from 'node:crypto';

/** What every key starts with. Source: contract, Authentication. */
const PREFIX = 'sk_live_';
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const LENGTH = 43;
const SHAPE = /^sk_live_[0-9A-Za-z]{43}$/;

/** A new key: `sk_live_` and 32 random bytes as 43 base-62 characters. Shown once; only its hash is kept. */
export function newApiKey(): string {
  let rest = BigInt(`0x${randomBytes(32).toString('hex')}`);
  let digits = '';
  for (let position = 0; position < LENGTH; position++) {
    digits = DIGITS[Number(rest % 62n)] + digits;
    rest /= 62n;
  }
  return PREFIX + digits;
}

/** Whether a token could be a key at all. */
export function looksLikeApiKey(token: string): boolean {
  return SHAPE.test(token);
}

/**
 * SHA-256 of a key: what the database keeps and is asked for. A key has 256 random bits, so neither salt nor stretching
 * adds anything, and looking a hash up tells nothing about the key in constant or any time.
 */
export function hashApiKey(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}

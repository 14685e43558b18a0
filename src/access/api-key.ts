import { hash, randomBytes } from 'node:crypto';
import { API_KEY_DIGITS, API_KEY_LENGTH, API_KEY_PREFIX } from '../../common/contract/api-key.ts';

const BASE = BigInt(API_KEY_DIGITS.length);

/** A new key: `sk_live_` and 32 random bytes as 43 base-62 characters. Shown once; only its hash is kept. */
export function newApiKey(): string {
  let rest = BigInt(`0x${randomBytes(32).toString('hex')}`);
  let digits = '';
  for (let position = 0; position < API_KEY_LENGTH; position++) {
    digits = API_KEY_DIGITS[Number(rest % BASE)] + digits;
    rest /= BASE;
  }
  return API_KEY_PREFIX + digits;
}

/**
 * SHA-256 of a key: what the database keeps and is asked for. A key has 256 random bits, so neither salt nor stretching
 * adds anything, and looking a hash up tells nothing about the key in constant or any time.
 */
export function hashApiKey(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}

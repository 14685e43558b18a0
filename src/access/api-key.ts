import { hash, randomBytes } from 'node:crypto';
import { API_KEY_DIGITS, API_KEY_LENGTH, API_KEY_PREFIX } from '../../common/contract/api-key.ts';

const BASE = BigInt(API_KEY_DIGITS.length);

/**
 * Generates a key: `sk_live_` and 32 random bytes as 43 base-62 characters. It is shown once; only its hash is stored.
 */
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
 * SHA-256 of a key, which is what the database stores and looks up. A key has 256 random bits, so salting or stretching
 * adds nothing, and the timing of a look-up by hash reveals nothing about the key.
 */
export function hashApiKey(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}

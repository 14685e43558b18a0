import { randomBytes } from 'node:crypto';
import { failure } from '../contract/errors.ts';

/** Digits and letters without those that are taken for one another in print: 0 O 1 I l. */
const ALPHABET = '23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
const LENGTH = 7;

/** How often a new short code is drawn before the caller is told to try again. */
const ATTEMPTS = 5;

/** Whether a path segment could be a short code. */
export const SHORT_CODE = /^[2-9A-HJ-NP-Za-km-z]{7}$/;

/** 7 characters from a cryptographic generator: 57⁷, about 2·10¹², equally likely values. */
export function newShortCode(): string {
  let code = '';
  while (code.length < LENGTH) {
    for (const byte of randomBytes(16)) {
      // Bytes past the last whole multiple are thrown away, or the first letters would come more often.
      const letter = byte < 228 ? ALPHABET[byte % ALPHABET.length] : undefined;
      if (letter !== undefined && code.length < LENGTH) code += letter;
    }
  }
  return code;
}

/** Draws short codes until `insert` takes one; it gives undefined for one that is taken. */
export async function withNewShortCode<Result>(
  insert: (shortCode: string) => Promise<Result | undefined>,
): Promise<Result> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const inserted = await insert(newShortCode());
    if (inserted !== undefined) return inserted;
  }
  throw failure('SHORT_CODE_NOT_ALLOCATED', 'No free short code was found; try again.');
}

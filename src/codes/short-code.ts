import { randomFillSync } from 'node:crypto';
import { failure } from '../../common/contract/errors.ts';

/** Digits and letters without those that are taken for one another in print: 0 O 1 I l. */
const ALPHABET = '23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
const LENGTH = 7;

/** How often a new short code is drawn before the caller is told to try again. */
export const SHORT_CODE_ATTEMPTS = 5;

/** Random bytes are drawn from the system many at a time: a batch of 25,000 would spend a third of a second on it. */
const pool = Buffer.alloc(4_096);
let drawn = pool.length;

function randomByte(): number {
  if (drawn === pool.length) {
    randomFillSync(pool);
    drawn = 0;
  }
  return pool[drawn++] ?? 0;
}

/** 7 characters from a cryptographic generator: 57⁷, about 2·10¹², equally likely values. */
export function newShortCode(): string {
  let code = '';
  while (code.length < LENGTH) {
    const byte = randomByte();
    // Bytes past the last whole multiple are thrown away, or the first letters would come more often.
    if (byte < 4 * ALPHABET.length) code += ALPHABET[byte % ALPHABET.length];
  }
  return code;
}

/** Draws short codes until `insert` takes one; it gives undefined for one that is taken. */
export async function withNewShortCode<Result>(
  insert: (shortCode: string) => Promise<Result | undefined>,
): Promise<Result> {
  for (let attempt = 0; attempt < SHORT_CODE_ATTEMPTS; attempt++) {
    const inserted = await insert(newShortCode());
    if (inserted !== undefined) return inserted;
  }
  throw failure('SHORT_CODE_NOT_ALLOCATED', 'No free short code was found; try again.');
}

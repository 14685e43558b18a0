import { randomFillSync } from 'node:crypto';
import { failure } from '../../../common/contract/errors.ts';
import { SHORT_CODE_ALPHABET, SHORT_CODE_LENGTH } from '../../../common/contract/short-code.ts';

/** Maximum attempts to find a free short code before the call fails. */
export const SHORT_CODE_ATTEMPTS = 5;

/**
 * Random bytes, requested from the system many at a time: one request per code would cost a batch of 25,000 codes a
 * third of a second.
 */
const pool = Buffer.alloc(4_096);
let used = pool.length;

function randomByte(): number {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  return pool[used++] ?? 0;
}

/** Generates 7 characters with a cryptographic generator: 57⁷, about 2·10¹², equally likely values. */
export function newShortCode(): string {
  let code = '';
  while (code.length < SHORT_CODE_LENGTH) {
    const byte = randomByte();
    // Bytes beyond the last whole multiple are discarded; otherwise the first characters would be more frequent.
    if (byte < 4 * SHORT_CODE_ALPHABET.length) code += SHORT_CODE_ALPHABET[byte % SHORT_CODE_ALPHABET.length];
  }
  return code;
}

/**
 * Calls `insert` with new short codes until it succeeds; it resolves to undefined when the short code exists already.
 * Fails with SHORT_CODE_NOT_ALLOCATED.
 */
export async function withNewShortCode<Result>(
  insert: (shortCode: string) => Promise<Result | undefined>,
): Promise<Result> {
  for (let attempt = 0; attempt < SHORT_CODE_ATTEMPTS; attempt++) {
    const inserted = await insert(newShortCode());
    if (inserted !== undefined) return inserted;
  }
  throw shortCodeNotAllocated();
}

/** The failure of a call for which no free short code was found in `SHORT_CODE_ATTEMPTS`. */
export function shortCodeNotAllocated() {
  return failure('SHORT_CODE_NOT_ALLOCATED', 'No free short code was found; try again.');
}

import { hash } from 'node:crypto';

/** The number of different hashes used: 48 bits. */
const RANGE = 2 ** 48;

/**
 * What selects a reader's variant: a number from 0 to below 1, from SHA-256 over the code, the version of its target and the
 * visitor. So the variants of different codes and versions are independent of each other, and a reader keeps theirs for
 * the day, until the salt of the visitor's hash changes. Takes 0.6 µs.
 *
 * `codeId`: `qr_…`. `visitor`: the hash of the scan's visitor, as hexadecimal digits.
 */
export function variantShare(codeId: string, version: number, visitor: string): number {
  return hash('sha256', `${codeId}\n${version}\n${visitor}`, 'buffer').readUIntBE(0, 6) / RANGE;
}

import { randomFillSync } from 'node:crypto';

/** Random bytes are generated for this many ids at once: one call costs as much as the rest of 200 ids. */
const IDS_PER_FILL = 512;
const RANDOM_BYTES = 10;

const random = Buffer.allocUnsafeSlow(IDS_PER_FILL * RANDOM_BYTES);
let used = random.length;

/**
 * Writes a new UUIDv7 (RFC 9562 §5.7) with the time `now` (ms since 1970) into 16 bytes of `bytes`, starting at `at`.
 */
export function writeScanId(bytes: Uint8Array, at: number, now: number): void {
  if (used === random.length) {
    randomFillSync(random);
    used = 0;
  }
  const high = Math.floor(now / 0x1_0000);
  bytes[at] = high >>> 24;
  bytes[at + 1] = high >>> 16;
  bytes[at + 2] = high >>> 8;
  bytes[at + 3] = high;
  bytes[at + 4] = now >>> 8;
  bytes[at + 5] = now;
  for (let index = 6; index < 16; index++) bytes[at + index] = random[used++] ?? 0;
  bytes[at + 6] = 0x70 | ((bytes[at + 6] ?? 0) & 0x0f);
  bytes[at + 8] = 0x80 | ((bytes[at + 8] ?? 0) & 0x3f);
}

/** The text form of the UUID in the 16 bytes of `bytes` that start at `at`. */
export function scanIdText(bytes: Buffer, at: number): string {
  const hex = bytes.toString('hex', at, at + 16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

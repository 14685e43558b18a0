import { randomFillSync } from 'node:crypto';

/** Random bytes are fetched for this many ids at once: each fetch costs as much as the rest of two hundred ids. */
const AT_ONCE = 512;
const RANDOM_BYTES = 10;

const random = Buffer.allocUnsafeSlow(AT_ONCE * RANDOM_BYTES);
let used = random.length;

/** Writes a new UUIDv7 (RFC 9562 §5.7) of the time `now`, in ms since 1970, into 16 bytes of `bytes` from `at` on. */
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

/** The id that stands in 16 bytes of `bytes` from `at` on, as UUIDs are written. */
export function scanIdText(bytes: Buffer, at: number): string {
  const hex = bytes.toString('hex', at, at + 16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

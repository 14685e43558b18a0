import { crc32 } from 'node:zlib';

/** The header of each payload in a segment: its length and its CRC-32, both 4 bytes big-endian. */
const HEADER_BYTES = 8;

/** The longest payload, in bytes: a greater length in a header means damage. */
export const MAX_PAYLOAD_BYTES = 16_384;

/**
 * Writes a payload and its header into `bytes` at offset `at`; returns the offset after them. A payload must not be
 * empty: a hole of zeros in a file must not read as frames.
 */
export function writeFrame(bytes: Buffer, at: number, payload: Uint8Array): number {
  bytes.writeUInt32BE(payload.length, at);
  bytes.writeUInt32BE(crc32(payload), at + 4);
  bytes.set(payload, at + HEADER_BYTES);
  return at + frameBytes(payload);
}

/** The size of a payload with its header, in bytes. */
export function frameBytes(payload: Uint8Array): number {
  return HEADER_BYTES + payload.length;
}

/** The result of reading a part of a segment. */
export interface Frames {
  readonly payloads: Uint8Array[];
  /** The number of bytes consumed: the next part starts after them. */
  readonly read: number;
  /** The number of bytes among them that belong to no complete frame. */
  readonly damaged: number;
}

/**
 * Reads the frames of a part of a segment. `next` says what follows it: `more` of the segment; `nothing`, at its end;
 * or `open`, if the segment is still being written, and then reading stops at the first frame that is not complete.
 *
 * After damage of any kind it searches, byte by byte, for the next frame with a correct checksum, so that one bad
 * sector costs only the scans on it.
 */
export function readFrames(bytes: Buffer, next: 'more' | 'nothing' | 'open'): Frames {
  const payloads: Uint8Array[] = [];
  let read = 0;
  let damaged = 0;
  while (read < bytes.length) {
    const found = payloadAt(bytes, read);
    if (found instanceof Uint8Array) {
      payloads.push(found);
      read += HEADER_BYTES + found.length;
    } else {
      if (next === 'open' || (found === 'not whole' && next === 'more')) break;
      damaged++;
      read++;
    }
  }
  return { payloads, read, damaged };
}

function payloadAt(bytes: Buffer, start: number): Uint8Array | 'not whole' | 'damaged' {
  const payloadStart = start + HEADER_BYTES;
  if (payloadStart > bytes.length) return 'not whole';
  const length = bytes.readUInt32BE(start);
  if (length === 0 || length > MAX_PAYLOAD_BYTES) return 'damaged';
  if (payloadStart + length > bytes.length) return 'not whole';
  const payload = bytes.subarray(payloadStart, payloadStart + length);
  return crc32(payload) === bytes.readUInt32BE(start + 4) ? payload : 'damaged';
}

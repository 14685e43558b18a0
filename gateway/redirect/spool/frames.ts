import { crc32 } from 'node:zlib';

/** Length and CRC-32 of the payload, both big-endian, stand before each payload of a segment. */
const HEADER_BYTES = 8;

/** No payload is longer, so a greater length is damage. */
export const MOST_PAYLOAD_BYTES = 16_384;

/**
 * Writes a payload, as it stands in a segment, into `bytes` from `at` on; gives where the next one goes. A payload is
 * never empty: a hole of zeros in a file must not read as frames.
 */
export function writeFrame(bytes: Buffer, at: number, payload: Uint8Array): number {
  bytes.writeUInt32BE(payload.length, at);
  bytes.writeUInt32BE(crc32(payload), at + 4);
  bytes.set(payload, at + HEADER_BYTES);
  return at + frameBytes(payload);
}

/** A payload as it stands in a segment. */
export function frame(payload: Uint8Array): Buffer {
  const framed = Buffer.allocUnsafe(frameBytes(payload));
  writeFrame(framed, 0, payload);
  return framed;
}

/** How long a payload is in a segment. */
export function frameBytes(payload: Uint8Array): number {
  return HEADER_BYTES + payload.length;
}

/** What was read of a part of a segment. */
export interface Frames {
  readonly payloads: Uint8Array[];
  /** Bytes that are done with: the next part starts behind them. */
  readonly read: number;
  /** Bytes among them that belong to no whole frame. */
  readonly damaged: number;
}

/**
 * Reads the frames of a part of a segment. `next` says what is behind it: `more` of the segment; `nothing`, ever; or
 * what is yet to be written, and then only frames that are whole already are read.
 *
 * Behind damage of any kind it looks, byte by byte, for the next frame whose checksum is right, so that one bad sector
 * costs the scans on it and no others.
 */
export function readFrames(bytes: Buffer, next: 'more' | 'nothing' | 'unwritten'): Frames {
  const payloads: Uint8Array[] = [];
  let read = 0;
  let damaged = 0;
  while (read < bytes.length) {
    const found = payloadAt(bytes, read);
    if (found instanceof Uint8Array) {
      payloads.push(found);
      read += HEADER_BYTES + found.length;
    } else {
      if (next === 'unwritten' || (found === 'not whole' && next === 'more')) break;
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
  if (length === 0 || length > MOST_PAYLOAD_BYTES) return 'damaged';
  if (payloadStart + length > bytes.length) return 'not whole';
  const payload = bytes.subarray(payloadStart, payloadStart + length);
  return crc32(payload) === bytes.readUInt32BE(start + 4) ? payload : 'damaged';
}

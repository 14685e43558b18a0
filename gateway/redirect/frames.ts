import { crc32 } from 'node:zlib';

/** Length and CRC-32 of the payload, big-endian, stand before each payload of a segment. */
const HEADER_BYTES = 8;

/** Nothing that is spooled is longer; a longer length means that the segment is damaged. */
const MOST_BYTES = 65_536;

/** A payload as it stands in a segment. */
export function frame(payload: Uint8Array): Buffer {
  const framed = Buffer.allocUnsafe(HEADER_BYTES + payload.length);
  framed.writeUInt32BE(payload.length, 0);
  framed.writeUInt32BE(crc32(payload), 4);
  framed.set(payload, HEADER_BYTES);
  return framed;
}

/** What was read of a part of a segment. */
export interface Frames {
  readonly payloads: Uint8Array[];
  /** Bytes that are done with; what follows is a frame that is not whole yet, or never will be. */
  readonly read: number;
  /** Frames whose checksum is wrong; they are left out. */
  readonly corrupt: number;
  /** True: a length makes no sense, so nothing behind it can be found. */
  readonly lost: boolean;
}

/** Reads frames until the bytes end. */
export function readFrames(bytes: Buffer): Frames {
  const payloads: Uint8Array[] = [];
  let read = 0;
  let corrupt = 0;
  while (bytes.length - read >= HEADER_BYTES) {
    const length = bytes.readUInt32BE(read);
    if (length > MOST_BYTES) return { payloads, read, corrupt, lost: true };
    const end = read + HEADER_BYTES + length;
    if (end > bytes.length) break;
    const payload = bytes.subarray(read + HEADER_BYTES, end);
    if (crc32(payload) === bytes.readUInt32BE(read + 4)) payloads.push(payload);
    else corrupt++;
    read = end;
  }
  return { payloads, read, corrupt, lost: false };
}

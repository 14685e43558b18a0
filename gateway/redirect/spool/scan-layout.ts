/** Tags of the first two fields of a serialized `signpost.scans.v1.Scan`: number << 3 | wire type. */
export const ID = 0x0a;
export const CODE_ID = 0x12;

/** The offset of the id, which has 16 bytes. */
export const ID_AT = 2;

/**
 * The code id of a serialized scan, which determines its partition. Undefined if the bytes don't have the layout that
 * `scanWriter` produces: another version may have written them.
 */
export function codeIdIn(message: Uint8Array): string | undefined {
  const start = ID_AT + 18;
  const length = message[start - 1] ?? 0;
  if (message[0] !== ID || message[1] !== 16 || message[start - 2] !== CODE_ID || length > 127) return undefined;
  return Buffer.from(message.buffer, message.byteOffset + start, length).toString('latin1');
}

/** When a scan of that layout was answered, in ms since 1970, taken from its id; the current time for any other. */
export function answeredAt(message: Uint8Array): number {
  if (message[0] !== ID || message[1] !== 16 || message.length < ID_AT + 16) return Date.now();
  return Buffer.from(message.buffer, message.byteOffset + ID_AT, 6).readUIntBE(0, 6);
}

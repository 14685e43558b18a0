import { randomFillSync } from 'node:crypto';
import { v7 } from 'uuid';

/** Sorts before every other UUID. Source: RFC 9562, section 5.9. */
export const NIL_UUID = '00000000-0000-0000-0000-000000000000';

/** Sorts after every other UUID. Source: RFC 9562, section 5.10. */
export const MAX_UUID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** The prefix of an id, which says what it identifies. Source: docs/contract.md, "Identifiers". */
export type IdPrefix =
  | 'qr'
  | 'batch'
  | 'change'
  | 'folder'
  | 'tag'
  | 'domain'
  | 'acct'
  | 'hook'
  | 'evt'
  | 'dlv'
  | 'mbr';

/** Crockford's base 32 in lower case, as in TypeID. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const DIGITS = Buffer.from(ALPHABET);
const VALUE = valuesOf(ALPHABET);
/** An id that is being written. */
const id = Buffer.allocUnsafeSlow(64);
const UNDERSCORE = 0x5f;

const HEX_ALPHABET = '0123456789abcdef';
const HEX_DIGITS = Buffer.from(HEX_ALPHABET);
const HEX_VALUE = valuesOf(HEX_ALPHABET);
/** The positions of the hexadecimal digits of a UUID's 16 bytes. */
const BYTES_IN_UUID = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
const bytes = new Uint8Array(16);
const text = Buffer.from('........-....-....-....-............');
const DASH = 0x2d;

/** The value of each character by its code; -1 for characters outside the alphabet, undefined beyond ASCII. */
function valuesOf(alphabet: string): Int8Array {
  const values = new Int8Array(128).fill(-1);
  for (const [value, character] of [...alphabet].entries()) values[character.charCodeAt(0)] = value;
  return values;
}

/** Generated many at a time: one by one, those of a batch of 25,000 took a quarter of a second. */
const random = Buffer.allocUnsafeSlow(4_096);
let used = random.length;
let latest = { msecs: 0, seq: 0 };

/** Creates a UUIDv7 in canonical form; later ones sort after earlier ones of this process. */
export function newUuid(): string {
  if (used === random.length) {
    randomFillSync(random);
    used = 0;
  }
  const own = random.subarray(used, used + 16);
  used += 16;
  const { msecs, seq } = latest;
  const now = Date.now();
  if (now > msecs) latest = { msecs: now, seq: own.readUInt32BE(6) >>> 1 };
  else latest = seq < 0xffff_ffff ? { msecs, seq: seq + 1 } : { msecs: msecs + 1, seq: 0 };
  return v7({ ...latest, random: own });
}

/** The lowest UUIDv7 of a time in ms since 1970. Times that a UUIDv7 cannot have become the nearest one. */
export function lowestUuidAt(time: number): string {
  const hex = Math.min(Math.max(time, 0), 2 ** 48 - 1)
    .toString(16)
    .padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
}

/** Writes the 16 bytes of a UUID, given in canonical form, into `to` at offset `at`. */
export function writeUuid(uuid: string, to: Uint8Array, at: number): void {
  let byte = at;
  for (const digit of BYTES_IN_UUID) {
    const high = HEX_VALUE[uuid.charCodeAt(digit)] as number;
    to[byte++] = (high << 4) | (HEX_VALUE[uuid.charCodeAt(digit + 1)] as number);
  }
}

/** `prefix_` and 26 base-32 characters of the UUID (TypeID 0.3). */
export function encodeId(prefix: IdPrefix, uuid: string): string {
  writeUuid(uuid, bytes, 0);
  return idIn(prefix, bytes, 0);
}

/** The same for the UUID in the 16 bytes of `bytes` that start at `at`. */
export function idIn(prefix: IdPrefix, bytes: Uint8Array, at: number): string {
  let end = 0;
  for (; end < prefix.length; end++) id[end] = prefix.charCodeAt(end);
  id[end++] = UNDERSCORE;
  // 130 bits in groups of five, of which the first two are zero.
  let bits = 2;
  let rest = 0;
  let from = at;
  for (let digit = 0; digit < 26; digit++) {
    if (bits < 5) {
      rest = (rest << 8) | (bytes[from++] ?? 0);
      bits += 8;
    }
    bits -= 5;
    id[end++] = DIGITS[(rest >>> bits) & 31] ?? 0;
  }
  return id.toString('latin1', 0, end);
}

/** The UUID of an id with this prefix; undefined if it is not one. */
export function decodeId(prefix: IdPrefix, id: string): string | undefined {
  const from = prefix.length + 1;
  if (id.length !== from + 26 || !id.startsWith(`${prefix}_`)) return undefined;
  // 130 bits in groups of five, of which the first two are zero, become 128 in groups of four.
  let bits = -2;
  let rest = 0;
  let at = 0;
  for (let digit = from; digit < id.length; digit++) {
    const value = VALUE[id.charCodeAt(digit)] ?? -1;
    if (value < 0 || (digit === from && value > 7)) return undefined;
    rest = ((rest << 5) | value) & 0xfff;
    bits += 5;
    while (bits >= 4) {
      bits -= 4;
      if (text[at] === DASH) at++;
      text[at++] = HEX_DIGITS[(rest >>> bits) & 15] ?? 0;
    }
  }
  return text.toString('latin1');
}

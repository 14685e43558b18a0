import { v7 } from 'uuid';

/** What an id stands for; its prefix. Source: decision "Identifiers". */
export type IdPrefix = 'qr' | 'batch' | 'folder' | 'tag' | 'domain' | 'acct' | 'key' | 'hook' | 'evt' | 'dlv' | 'mbr';

/** Crockford's base 32 in lower case, as TypeID has it. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const DIGITS = Buffer.from(ALPHABET);
const suffix = Buffer.allocUnsafeSlow(26);
const VALUE = new Map([...ALPHABET].map((character, value) => [character, BigInt(value)]));
const SUFFIX = /^[0-7][0-9a-hjkmnp-tv-z]{25}$/;

/** A new UUIDv7 in its canonical form: later ones sort after earlier ones of this process. */
export function newUuid(): string {
  return v7();
}

/** `prefix_` and 26 base-32 characters of the UUID (TypeID 0.3). */
export function encodeId(prefix: IdPrefix, uuid: string): string {
  return idIn(prefix, Buffer.from(uuid.replaceAll('-', ''), 'hex'), 0);
}

/** The same of the UUID that stands in 16 bytes of `bytes` from `at` on. */
export function idIn(prefix: IdPrefix, bytes: Uint8Array, at: number): string {
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
    suffix[digit] = DIGITS[(rest >>> bits) & 31] ?? 0;
  }
  return `${prefix}_${suffix.toString('latin1')}`;
}

/** The UUID of an id with this prefix; undefined when it is none. */
export function decodeId(prefix: IdPrefix, id: string): string | undefined {
  const suffix = id.startsWith(`${prefix}_`) ? id.slice(prefix.length + 1) : '';
  if (!SUFFIX.test(suffix)) return undefined;
  let value = 0n;
  for (const character of suffix) value = (value << 5n) | (VALUE.get(character) ?? 0n);
  const hex = value.toString(16).padStart(32, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

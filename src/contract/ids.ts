import { v7 } from 'uuid';

/** What an id stands for; its prefix. Source: decision "Identifiers". */
export type IdPrefix = 'qr' | 'batch' | 'folder' | 'tag' | 'domain' | 'acct' | 'key' | 'hook' | 'evt' | 'dlv' | 'mbr';

/** Crockford's base 32 in lower case, as TypeID has it. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const VALUE = new Map([...ALPHABET].map((character, value) => [character, BigInt(value)]));
const SUFFIX = /^[0-7][0-9a-hjkmnp-tv-z]{25}$/;

/** A new UUIDv7 in its canonical form: later ones sort after earlier ones of this process. */
export function newUuid(): string {
  return v7();
}

/** `prefix_` and 26 base-32 characters of the UUID (TypeID 0.3). */
export function encodeId(prefix: IdPrefix, uuid: string): string {
  const hex = uuid.replaceAll('-', '');
  // 128 bits in groups of five from the right: the first two groups hold three bits and five.
  let suffix = '';
  for (let end = 32; end > 0; end -= 5) {
    // Five hex digits are four characters; the two on the left are the first two.
    let bits = Number.parseInt(hex.slice(Math.max(0, end - 5), end), 16);
    let characters = '';
    for (let count = end >= 5 ? 4 : 2; count > 0; count--) {
      characters = ALPHABET[bits & 31] + characters;
      bits >>= 5;
    }
    suffix = characters + suffix;
  }
  return `${prefix}_${suffix}`;
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

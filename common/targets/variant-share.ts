/** The offset and the prime of FNV-1a with 32 bits. */
const [OFFSET, PRIME] = [0x811c9dc5, 0x01000193];

/**
 * What selects a visitor's variant: a number from 0 to below 1, a hash of the code, the version of its target and the
 * visitor's hash. So the variants of different codes and versions are independent of each other, and visitors keep
 * theirs for the day, until the salt of their hashes changes. Takes 0.1 µs, SHA-256 0.6: the visitor's hash is salted
 * already, and nobody can choose it.
 *
 * `codeId`: `qr_…`. `visitor`: the visitor's hash, as hexadecimal digits.
 */
export function variantShare(codeId: string, version: number, visitor: string): number {
  return shareOfCode(hashOfCode(codeId), version, visitor);
}

/** The same, given `hashOfCode(codeId)`. */
export function shareOfCode(hash: number, version: number, visitor: string): number {
  return mixed(fnv1a(hash ^ version, visitor)) / 2 ** 32;
}

/** A hash of a code's id: an integer of 32 bits. */
export function hashOfCode(codeId: string): number {
  return fnv1a(OFFSET, codeId);
}

function fnv1a(start: number, text: string): number {
  let hash = start;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), PRIME);
  return hash;
}

/** The finalizer of MurmurHash3: each bit of the result depends on every bit of the hash. */
function mixed(hash: number): number {
  let bits = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}

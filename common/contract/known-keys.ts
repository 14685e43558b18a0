import { hash } from 'node:crypto';

/**
 * Maximum number of keys, about 1 MB. When it is reached, all are forgotten, and are valid again after their next
 * check.
 */
const MAX_KEYS = 10_000;

/**
 * Credentials that have lately been found valid, as hashes. It never replaces a check: it tells which requests may skip
 * the limits and queues for those with keys that may be made up.
 */
export class KnownKeys {
  readonly #hashes = new Set<string>();

  has(credentials: string): boolean {
    return this.#hashes.has(hashOf(credentials));
  }

  add(credentials: string): void {
    if (this.#hashes.size >= MAX_KEYS) this.#hashes.clear();
    this.#hashes.add(hashOf(credentials));
  }

  delete(credentials: string): void {
    this.#hashes.delete(hashOf(credentials));
  }
}

function hashOf(credentials: string): string {
  return hash('sha256', credentials, 'base64');
}

/** A map that is cleared when it is full, which costs less than tracking the order of use. */
export class BoundedMap<Key, Value> {
  readonly #map = new Map<Key, { readonly value: Value; readonly size: number }>();
  readonly #maxEntries: number;
  readonly #maxSize: number;
  #size = 0;

  constructor(maxEntries: number, maxSize: number) {
    this.#maxEntries = maxEntries;
    this.#maxSize = maxSize;
  }

  get(key: Key): Value | undefined {
    return this.#map.get(key)?.value;
  }

  /** `size`: of the key and its value, in the unit of the maximum. */
  set(key: Key, value: Value, size: number): void {
    this.#size -= this.#map.get(key)?.size ?? 0;
    this.#map.delete(key);
    if (this.#map.size >= this.#maxEntries || this.#size + size > this.#maxSize) {
      this.#map.clear();
      this.#size = 0;
    }
    this.#map.set(key, { value, size });
    this.#size += size;
  }
}

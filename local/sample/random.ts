/** A pseudo-random generator: the same seed gives the same numbers. */
export interface Random {
  /** A number from 0 to below 1. */
  fraction(): number;
  /** A whole number from `min` to `max`, both inclusive. */
  between(min: number, max: number): number;
  /** An item of a non-empty list. */
  oneOf<Item>(list: readonly Item[]): Item;
  /** The list in random order. */
  shuffled<Item>(list: readonly Item[]): Item[];
}

/** Mulberry32: 32 bits of state, enough to choose faults and sample scans. */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (min: number, max: number) => min + Math.floor(next() * (max - min + 1));
  return {
    fraction: next,
    between,
    oneOf: (list) => list[between(0, list.length - 1)] as (typeof list)[number],
    shuffled(list) {
      const left = [...list];
      return Array.from(list, () => left.splice(between(0, left.length - 1), 1)[0] as (typeof list)[number]);
    },
  };
}

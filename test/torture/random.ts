/** Draws numbers, the same ones for the same seed. */
export interface Random {
  /** A whole number from `least` to `most`, both included. */
  between(least: number, most: number): number;
  /** One of a list that is not empty. */
  oneOf<Item>(list: readonly Item[]): Item;
  /** The list in another order. */
  shuffled<Item>(list: readonly Item[]): Item[];
}

/** Mulberry32: 32 bits of state, which is plenty to choose faults with. */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  const draw = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (least: number, most: number) => least + Math.floor(draw() * (most - least + 1));
  return {
    between,
    oneOf: (list) => list[between(0, list.length - 1)] as (typeof list)[number],
    shuffled(list) {
      const left = [...list];
      return Array.from(list, () => left.splice(between(0, left.length - 1), 1)[0] as (typeof list)[number]);
    },
  };
}

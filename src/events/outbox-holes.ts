/** Numbers of the outbox from `first` to before `past` that were missing between others. */
export interface Hole {
  readonly first: bigint;
  readonly past: bigint;
}

/** Reads Postgres's text of an `int8multirange`. */
export function parseHoles(text: string): Hole[] {
  return [...text.matchAll(/\[(\d+),(\d+)\)/g)].map(([, first = '', past = '']) => ({
    first: BigInt(first),
    past: BigInt(past),
  }));
}

/** Writes holes as an `int8multirange`. */
export function formatHoles(holes: readonly Hole[]): string {
  return `{${holes.map(({ first, past }) => `[${first},${past})`).join(',')}}`;
}

/** What is left of a hole without some numbers, which are in ascending order. */
export function without(hole: Hole, numbers: readonly bigint[]): Hole[] {
  const left: Hole[] = [];
  let { first } = hole;
  for (const number of numbers) {
    if (number < first || number >= hole.past) continue;
    if (number > first) left.push({ first, past: number });
    first = number + 1n;
  }
  if (first < hole.past) left.push({ first, past: hole.past });
  return left;
}

/** Those of some numbers that are in a hole, each a hole of its own. */
export function within({ first, past }: Hole, numbers: readonly bigint[]): Hole[] {
  return numbers
    .filter((number) => number >= first && number < past)
    .map((number) => ({ first: number, past: number + 1n }));
}

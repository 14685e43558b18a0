/** A range of missing ids of the outbox, from `first` to before `end`, between ids that were read. */
export interface Hole {
  readonly first: bigint;
  readonly end: bigint;
}

/** Parses an `int8multirange` in Postgres's text form. */
export function parseHoles(text: string): Hole[] {
  return [...text.matchAll(/\[(\d+),(\d+)\)/g)].map(([, first = '', end = '']) => ({
    first: BigInt(first),
    end: BigInt(end),
  }));
}

/** Formats holes as an `int8multirange`. */
export function formatHoles(holes: readonly Hole[]): string {
  return `{${holes.map(({ first, end }) => `[${first},${end})`).join(',')}}`;
}

/** Removes ids, in ascending order, from a hole; returns the holes that remain. */
export function without(hole: Hole, ids: readonly bigint[]): Hole[] {
  const left: Hole[] = [];
  let { first } = hole;
  for (const id of ids) {
    if (id < first || id >= hole.end) continue;
    if (id > first) left.push({ first, end: id });
    first = id + 1n;
  }
  if (first < hole.end) left.push({ first, end: hole.end });
  return left;
}

/** The ids that lie in a hole, each as a hole of its own. */
export function within({ first, end }: Hole, ids: readonly bigint[]): Hole[] {
  return ids.filter((id) => id >= first && id < end).map((id) => ({ first: id, end: id + 1n }));
}

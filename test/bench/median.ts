/** The middle one of these values, of two the larger; NaN without any. */
export function median(values: readonly number[] = []): number {
  return values.toSorted((one, other) => one - other)[values.length >> 1] ?? Number.NaN;
}

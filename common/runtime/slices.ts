/**
 * Splits items into slices, in their order: a slice ends after `items` of them, or with the one with which their sizes
 * reach `size`.
 */
export function* slices<Item>(
  all: readonly Item[],
  limits: { readonly items: number; readonly size: number },
  sizeOf: (item: Item) => number,
): Generator<readonly Item[]> {
  let [start, size] = [0, 0];
  for (const [index, item] of all.entries()) {
    size += sizeOf(item);
    const end = index + 1;
    if (end - start < limits.items && size < limits.size && end < all.length) continue;
    yield all.slice(start, end);
    [start, size] = [end, 0];
  }
}

/** Items that a page is asked for at most: 1,000 tags of the longest names are half a megabyte. */
const MOST = 1_000;

/** A page of what the core lists, and where the next one starts. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly nextCursor?: string | undefined;
}

/** What of a list is asked for; without a limit, all of it. */
export interface Asked {
  readonly limit?: number;
  /** Left out first. */
  readonly offset?: number;
}

/**
 * Walks the pages of a list until so many items are read as are asked for. `read` is asked for a page of at most so many
 * items, which the core may make smaller, after a cursor or, on the first page, an offset.
 */
export async function walk<Item>(
  { limit = Number.POSITIVE_INFINITY, offset }: Asked,
  read: (page: { limit: number; offset?: number; cursor?: string }) => Promise<Page<Item>>,
): Promise<Item[]> {
  const items: Item[] = [];
  let from: { offset?: number; cursor?: string } = offset === undefined ? {} : { offset };
  while (items.length < limit) {
    const page = await read({ ...from, limit: Math.min(MOST, limit - items.length) });
    items.push(...page.items);
    if (page.nextCursor === undefined) break;
    from = { cursor: page.nextCursor };
  }
  return items;
}

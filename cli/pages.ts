/** The maximum page size: 1,000 tags with the longest names are half a megabyte. */
const MAX_PAGE_SIZE = 1_000;

/** A page of a list of the core, and the cursor of the next one. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly nextCursor?: string | undefined;
}

/** The requested part of a list; without a limit, all of it. */
export interface PageRange {
  readonly limit?: number;
  /** The number of items to skip first. */
  readonly offset?: number;
}

/**
 * Reads pages of a list until `limit` items are read. `read` returns a page of at most `limit` items (the core may return
 * fewer) after a cursor or, for the first page, an offset.
 */
export async function readPages<Item>(
  { limit = Number.POSITIVE_INFINITY, offset }: PageRange,
  read: (page: { limit: number; offset?: number; cursor?: string }) => Promise<Page<Item>>,
): Promise<Item[]> {
  const items: Item[] = [];
  let from: { offset?: number; cursor?: string } = offset === undefined ? {} : { offset };
  while (items.length < limit) {
    const page = await read({ ...from, limit: Math.min(MAX_PAGE_SIZE, limit - items.length) });
    items.push(...page.items);
    if (page.nextCursor === undefined) break;
    from = { cursor: page.nextCursor };
  }
  return items;
}

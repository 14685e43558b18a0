import type { Command } from 'commander';
import { withProgress } from './progress.ts';

/** The maximum page size: 1,000 tags with the longest names are half a megabyte. */
const MAX_PAGE_SIZE = 1_000;

/** A page of a list of the core, and the cursor of the next one. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly nextCursor?: string | undefined;
  /** The number of items from this page on (with an offset: of all), if the core counts them. */
  readonly total?: number;
}

/** The requested part of a list; without a limit, all of it. */
export interface PageRange {
  readonly limit?: number;
  /** The number of items to skip first. */
  readonly offset?: number;
}

/**
 * Reads pages of a list until `limit` items are read, and shows its progress unless `json` is set. `read` returns a
 * page of at most `limit` items (the core may return fewer) after a cursor or, for the first page, an offset. `what`:
 * the items' name. With `command`, readers of its list learn on standard error, also with `--json`, that its default
 * `--limit` left some out.
 */
export async function readPages<Item>(
  { limit = Number.POSITIVE_INFINITY, offset }: PageRange,
  { json, what, command }: { readonly json: boolean; readonly what: string; readonly command?: Command },
  read: (page: { limit: number; offset?: number; cursor?: string }) => Promise<Page<Item>>,
): Promise<Item[]> {
  const items: Item[] = [];
  let from: { offset?: number; cursor?: string } | undefined = offset === undefined ? {} : { offset };
  await withProgress({ json, what: `Reading ${what}` }, async (update) => {
    while (from && items.length < limit) {
      const page = await read({ ...from, limit: Math.min(MAX_PAGE_SIZE, limit - items.length) });
      const expected = page.total === undefined ? limit : items.length + page.total - (from.offset ?? 0);
      items.push(...page.items);
      update(items.length, Number.isFinite(expected) ? Math.min(limit, expected) : 0);
      from = page.nextCursor === undefined ? undefined : { cursor: page.nextCursor };
    }
  });
  if (from && command?.getOptionValueSource('limit') === 'default')
    console.error(`There are more than these ${items.length} ${what}; --limit shows more.`);
  return items;
}

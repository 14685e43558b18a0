import { MAX_UUID } from '../../common/contract/ids.ts';
import { clamp, type Range } from '../../common/contract/ranges.ts';
import { type Cursors, positionAfter } from './cursors.ts';

/** The effective limit and offset of a request: values out of range are clamped. */
export function pageOf(
  requested: { readonly limit?: number | undefined; readonly offset?: number | undefined },
  range: Range,
): { limit: number; offset: number } {
  return {
    limit: clamp(requested.limit, range),
    offset: Math.max(0, requested.offset ?? 0),
  };
}

/**
 * The items of a page and, if another page follows, its cursor. `read`: the items read, one more than the limit if
 * another page follows. `positionOf`: the sort key of an item in `list`.
 */
export function endPage<Item>(
  read: readonly Item[],
  limit: number,
  [cursors, list]: readonly [cursors: Cursors, list: string],
  positionOf: (item: Item) => string,
): { items: readonly Item[]; next: { nextCursor?: string } } {
  const items = read.slice(0, limit);
  const last = items.at(-1);
  const follows = last !== undefined && read.length > limit;
  return { items, next: follows ? { nextCursor: cursors.issue(list, positionOf(last)) } : {} };
}

/** A page of a list sorted by id, newest first: what to read for it, and how to complete it. */
export interface PageById {
  /** Read items with ids below this UUID. */
  readonly before: string;
  /** The number of items to read: one more than the page has. */
  readonly limit: number;
  /** The number of items to skip first. */
  readonly offset: number;
  end<Item extends { readonly id: string }>(
    read: readonly Item[],
  ): { items: readonly Item[]; next: { nextCursor?: string } };
}

/** The page requested by cursor or offset; the cursor takes precedence. Fails with INVALID_CURSOR. */
export function pageById(
  [cursors, list]: readonly [cursors: Cursors, list: string],
  requested: Parameters<typeof pageOf>[0] & { readonly cursor?: string | undefined },
  sizes: Parameters<typeof pageOf>[1],
): PageById {
  const { limit, offset } = pageOf(requested, sizes);
  const after = positionAfter(cursors, list, requested.cursor);
  return {
    before: after ?? MAX_UUID,
    limit: limit + 1,
    offset: after === null ? offset : 0,
    end: (read) => endPage(read, limit, [cursors, list], ({ id }) => id),
  };
}

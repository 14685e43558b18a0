import { type Cursors, positionAfter } from './cursors.ts';

/** Pages of codes, batches and deliveries. Source: docs/contract.md, "Bodies and envelopes". */
export const PAGE = { standard: 25, most: 100 } as const;

/** Pages of a batch's rows. */
export const ROWS_PAGE = { standard: 100, most: 1_000 } as const;

/** Pages of accounts and of audit entries. */
export const LONG_PAGE = { standard: 100, most: 1_000 } as const;

/** The greatest UUID, which no UUIDv7 is. */
const AFTER_ALL_IDS = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** The page that is given for what was asked: a limit out of range is clamped, nothing fails. */
export function pageOf(
  asked: { readonly limit?: number | undefined; readonly offset?: number | undefined },
  { standard, most }: { readonly standard: number; readonly most: number },
): { limit: number; offset: number } {
  return {
    limit: Math.min(most, Math.max(1, asked.limit ?? standard)),
    offset: Math.max(0, asked.offset ?? 0),
  };
}

/**
 * The items of a page out of what was read for it, which is one more item if another page follows, and then the cursor
 * of that page. `positionOf`: what `list` is sorted by.
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

/** A page of a list by id, newest first: what to read for it, and how to end it. */
export interface PageById {
  /** Items are read whose ids come before this UUID. */
  readonly before: string;
  /** How many to read: one more than the page has. */
  readonly limit: number;
  /** How many of them to leave out first. */
  readonly offset: number;
  end<Item extends { readonly id: string }>(
    read: readonly Item[],
  ): { items: readonly Item[]; next: { nextCursor?: string } };
}

/** The page that is asked for by cursor or offset, of which the cursor counts. Fails with INVALID_CURSOR. */
export function pageById(
  [cursors, list]: readonly [cursors: Cursors, list: string],
  asked: Parameters<typeof pageOf>[0] & { readonly cursor?: string | undefined },
  sizes: Parameters<typeof pageOf>[1],
): PageById {
  const { limit, offset } = pageOf(asked, sizes);
  const after = positionAfter(cursors, list, asked.cursor);
  return {
    before: after ?? AFTER_ALL_IDS,
    limit: limit + 1,
    offset: after === null ? offset : 0,
    end: (read) => endPage(read, limit, [cursors, list], ({ id }) => id),
  };
}

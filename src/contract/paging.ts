/** Pages of codes and batches. Source: decision "Bodies and envelopes". */
export const PAGE = { standard: 25, most: 100 } as const;

/** Pages of a batch's rows. */
export const ROWS_PAGE = { standard: 100, most: 1_000 } as const;

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

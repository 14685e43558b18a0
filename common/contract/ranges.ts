/** The values that a numeric parameter may have. Values out of range are clamped; an absent one becomes `fallback`. */
export interface Range {
  readonly least: number;
  readonly most: number;
  readonly fallback: number;
}

/** Pages of most lists. Source of this and the next: docs/contract.md, "Bodies and envelopes". */
export const PAGE_LIMIT: Range = { least: 1, most: 100, fallback: 25 };

/** Pages of lists of short items, such as rows of a batch. */
export const LONG_PAGE_LIMIT: Range = { least: 1, most: 1_000, fallback: 100 };

/** Days of a window of analytics. */
export const PERIOD_DAYS: Range = { least: 1, most: 365, fallback: 30 };

/** Width and height of a PNG, in pixels. */
export const IMAGE_PIXELS: Range = { least: 128, most: 4_096, fallback: 512 };

/**
 * Attempts shown with a webhook's delivery, the latest ones: the schedule has ten, and each resend adds more. A page of
 * 100 deliveries then has at most some 2 MiB of response bodies.
 */
export const SHOWN_ATTEMPTS = 20;

/** The value that is used for the requested one. */
export function clamp(requested: number | undefined, { least, most, fallback }: Range): number {
  return Math.min(most, Math.max(least, requested ?? fallback));
}

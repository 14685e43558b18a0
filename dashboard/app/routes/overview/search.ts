/** The periods that the overview offers, in days that end today. */
export const PERIODS = [7, 30, 90] as const;
export type Period = (typeof PERIODS)[number];

export interface OverviewSearch {
  /** Default: 30. */
  readonly days?: Period | undefined;
}

/** Reads the period from the address of the overview; undefined if it is none: see `validateCodesSearch`. */
export function validateOverviewSearch(search: Record<string, unknown>): OverviewSearch {
  return { days: PERIODS.find((each) => each === Number(search.days)) };
}

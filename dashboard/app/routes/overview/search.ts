/** The periods that the overview offers, in days that end today. */
export const PERIODS = [7, 30, 90] as const;
export type Period = (typeof PERIODS)[number];

export interface OverviewSearch {
  /** Default: 30. */
  readonly days?: Period;
}

/** Reads the period from the address of the overview. */
export function validateOverviewSearch(search: Record<string, unknown>): OverviewSearch {
  const days = PERIODS.find((each) => each === Number(search.days));
  return days === undefined ? {} : { days };
}

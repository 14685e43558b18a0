/** The dimensions of breakdowns: the values of the Postgres enum `scan_dimension`. */
export const DIMENSIONS = ['country', 'device', 'operating_system', 'browser', 'referrer'] as const;
export type Dimension = (typeof DIMENSIONS)[number];

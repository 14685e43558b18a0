import { recoveryInterval } from '../../data/queries.ts';

/** How often the figures are loaded again while the page is visible, in ms. */
const REFRESH_MS = 60_000;

/** The `refetchInterval` of the queries of the overview. */
export function refreshInterval(query: Parameters<typeof recoveryInterval>[0]): number {
  return recoveryInterval(query) || REFRESH_MS;
}

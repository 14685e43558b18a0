import { clamp, PERIOD_DAYS } from '../../common/contract/ranges.ts';
import type { Queryable } from '../../common/postgres/sql.ts';
import { DAY_MS } from '../../common/runtime/durations.ts';
import { dayOf } from '../scans/days.ts';
import { oneCode } from '../scans/reports/code-selection.ts';
import { scanCounts } from '../scans/reports/scan-counts.ts';
import { figuresOf } from './figures.ts';

/** Days of a window: clamped to 1–365, 30 by default. */
export function periodOf(requested: number | undefined): number {
  return clamp(requested, PERIOD_DAYS);
}

/**
 * Reads the lifetime total and the last `period` days of a code, today (UTC) included. Reads only counters, at most a
 * few hundred per day. `now` is in ms since 1970. Source: docs/contract.md, "Analytics".
 */
export async function codeAnalytics(
  on: Queryable,
  { accountId, codeId, period, now }: { accountId: string; codeId: string; period: number; now: number },
) {
  const from = now - (period - 1) * DAY_MS;
  const totals = await scanCounts(on, accountId, [codeId]);
  const figures = await figuresOf(on, { accountId, codes: oneCode(codeId), from, to: now }, 'days');
  return {
    totalScans: BigInt(totals.get(codeId) ?? 0),
    period,
    from: dayOf(from),
    to: dayOf(now),
    figures,
  };
}

import type { MessageInitShape } from '@bufbuild/protobuf';
import type { Queryable } from '../../common/postgres/sql.ts';
import type { FiguresSchema } from '../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import { dayBreakdowns, hourBreakdowns } from '../scans/reports/breakdowns.ts';
import { dayFigures, type FigureQuery, hourFigures, isWholeDays } from '../scans/reports/scan-figures.ts';
import { targetShares } from '../scans/reports/target-shares.ts';

/**
 * Reads the scans and visitors of a window by day or hour, with their breakdowns; those of a single code also by
 * target.
 */
export async function figuresOf(
  on: Queryable,
  query: FigureQuery,
  by: 'days' | 'hours',
): Promise<MessageInitShape<typeof FiguresSchema>> {
  const brokenDownBy = isWholeDays(query) ? 'days' : by;
  const intervals = await (by === 'days' ? dayFigures(on, query) : hourFigures(on, query));
  const breakdowns = await (brokenDownBy === 'days' ? dayBreakdowns(on, query) : hourBreakdowns(on, query));
  const targets = query.codes?.name === 'code' ? await targetShares(on, query.codes.id, query, brokenDownBy) : [];
  return {
    scans: intervals.reduce((sum, { scans }) => sum + scans, 0n),
    uniqueScans: intervals.reduce((sum, { unique }) => sum + unique, 0n),
    intervals: intervals.map(({ start, scans, unique }) => ({ start, scans, uniqueScans: unique })),
    countries: breakdowns.country,
    devices: breakdowns.device,
    operatingSystems: breakdowns.operating_system,
    browsers: breakdowns.browser,
    referrers: breakdowns.referrer,
    targets,
  };
}

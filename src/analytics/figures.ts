import type { MessageInitShape } from '@bufbuild/protobuf';
import type { Queryable } from '../../common/postgres/sql.ts';
import type { FiguresSchema } from '../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import {
  dayBreakdowns,
  dayFigures,
  type FigureQuery,
  hourBreakdowns,
  hourFigures,
} from '../scans/reports/scan-figures.ts';

/** Scans and visitors of a window, by day or hour, broken down. */
export async function figuresOf(
  on: Queryable,
  asked: FigureQuery,
  by: 'days' | 'hours',
): Promise<MessageInitShape<typeof FiguresSchema>> {
  const [intervals, shares] = await Promise.all([
    by === 'days' ? dayFigures(on, asked) : hourFigures(on, asked),
    by === 'days' ? dayBreakdowns(on, asked) : hourBreakdowns(on, asked),
  ]);
  return {
    scans: intervals.reduce((sum, { scans }) => sum + scans, 0n),
    uniqueScans: intervals.reduce((sum, { unique }) => sum + unique, 0n),
    intervals: intervals.map(({ start, scans, unique }) => ({ start, scans, uniqueScans: unique })),
    countries: shares.country,
    devices: shares.device,
    operatingSystems: shares.operating_system,
    browsers: shares.browser,
    referrers: shares.referrer,
  };
}

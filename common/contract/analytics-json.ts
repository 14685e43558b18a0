import type { GetCodeAnalyticsResponse, Share } from '../../proto/gen/signpost/analytics/v1/analytics_pb.ts';

/** Scans of a code in REST bodies and at the command line. Source: docs/contract.md, "Analytics". */
export interface AnalyticsJson {
  id: string;
  total_scans: number;
  /** Days of the window. */
  period: number;
  /** First and last day of the window, `YYYY-MM-DD`, UTC. */
  from: string;
  to: string;
  period_scans: number;
  unique_scans: number;
  breakdowns: {
    days: { date: string; scans: number; unique: number }[];
    countries: { country: string; scans: number }[];
    devices: { device: string; scans: number }[];
    operating_systems: { operating_system: string; scans: number }[];
    browsers: { browser: string; scans: number }[];
    referrers: { referrer: string; scans: number }[];
  };
}

/** Converts analytics of a code to JSON. Throws if they contain no figures, which the core always sends. */
export function analyticsJson({ figures, ...read }: GetCodeAnalyticsResponse): AnalyticsJson {
  if (!figures) throw new Error('the core responded without figures');
  return {
    id: read.id,
    total_scans: Number(read.totalScans),
    period: read.period,
    from: read.from,
    to: read.to,
    period_scans: Number(figures.scans),
    unique_scans: Number(figures.uniqueScans),
    breakdowns: {
      days: figures.intervals.map((day) => ({
        date: day.start,
        scans: Number(day.scans),
        unique: Number(day.uniqueScans),
      })),
      countries: shares(figures.countries, (country) => ({ country })),
      devices: shares(figures.devices, (device) => ({ device })),
      operating_systems: shares(figures.operatingSystems, (operating_system) => ({ operating_system })),
      browsers: shares(figures.browsers, (browser) => ({ browser })),
      referrers: shares(figures.referrers, (referrer) => ({ referrer })),
    },
  };
}

function shares<Named>(parts: Share[], named: (value: string) => Named): (Named & { scans: number })[] {
  return parts.map(({ value, scans }) => ({ ...named(value), scans: Number(scans) }));
}

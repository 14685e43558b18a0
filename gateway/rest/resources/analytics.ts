import { z } from 'zod';
import { analyticsJson } from '../../../common/contract/analytics-json.ts';
import { PERIOD_DAYS } from '../../../common/contract/ranges.ts';
import { AnalyticsService } from '../../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import type { CoreClients } from '../../core/clients.ts';
import { type Endpoint, endpoint } from '../endpoint.ts';
import { integer } from '../query.ts';
import { codeExample } from './code-schema.ts';
import { count, envelope, rangeParameter } from './page.ts';

const scans = count('Scans with it.');
/** The scans of one value; `name` names the schema. */
const share = <Shape extends z.ZodRawShape>(name: string, shape: Shape) =>
  z.object({ ...shape, scans }).meta({ id: `${name}Scans` });

const SORTED_BY_SCANS = 'Sorted by scans, descending; at most 50 entries, the rest summed up as `other`.';

const analyticsSchema = z
  .object({
    id: z.string().meta({ description: 'The code, `qr_…`.' }),
    total_scans: count('All scans of the code, including archived ones.'),
    period: z.int().min(1).meta({ description: 'Days of the window, which ends today (UTC) and includes it.' }),
    from: z.string().meta({ format: 'date', description: 'First day of the window.' }),
    to: z.string().meta({ format: 'date', description: 'Last day of the window.' }),
    period_scans: count('Scans in the window.'),
    unique_scans: count('Visitors in the window; a visitor on two days counts twice.'),
    breakdowns: z
      .object({
        days: z
          .array(share('Day', { date: z.string().meta({ format: 'date' }), unique: count('Visitors.') }))
          .meta({ description: 'Every day of the window, including those without scans, oldest first.' }),
        countries: z
          .array(share('Country', { country: z.string().meta({ description: 'ISO 3166 alpha-2, or `unknown`.' }) }))
          .meta({ description: SORTED_BY_SCANS }),
        devices: z
          .array(share('Device', { device: z.string().meta({ examples: ['mobile', 'desktop'] }) }))
          .meta({ description: '`mobile`, `tablet`, `desktop`, `bot`, `other`.' }),
        operating_systems: z
          .array(share('OperatingSystem', { operating_system: z.string() }))
          .meta({ description: SORTED_BY_SCANS }),
        browsers: z.array(share('Browser', { browser: z.string() })).meta({ description: SORTED_BY_SCANS }),
        referrers: z
          .array(share('Referrer', { referrer: z.string().meta({ description: 'A host, or `direct`.' }) }))
          .meta({ description: SORTED_BY_SCANS }),
      })
      .meta({ id: 'ScanBreakdowns', description: 'For the requested window only, unlike `total_scans`.' }),
  })
  .meta({ id: 'Analytics', description: 'Scans of a code.' });

/** Scan analytics of a code. Source: GET /api/v1/qr-codes/{id}/analytics; docs/contract.md, "Analytics". */
export function analytics(core: CoreClients): Endpoint[] {
  return [
    endpoint({
      id: 'getCodeAnalytics',
      method: 'GET',
      path: '/api/v1/qr-codes/{id}/analytics',
      rpc: AnalyticsService.method.getCodeAnalytics,
      tag: 'QR codes',
      summary: 'Read scan analytics',
      description: 'Lifetime total of a code, and breakdowns of the last `period` days.',
      query: {
        period: rangeParameter('Days of the window:', PERIOD_DAYS, 7),
      },
      success: { 200: 'Scan analytics.' },
      response: {
        schema: envelope(analyticsSchema),
        example: {
          success: true,
          data: {
            id: codeExample.id,
            total_scans: 1_204,
            period: 2,
            from: '2026-11-19',
            to: '2026-11-20',
            period_scans: 31,
            unique_scans: 27,
            breakdowns: {
              days: [
                { date: '2026-11-19', scans: 20, unique: 18 },
                { date: '2026-11-20', scans: 11, unique: 9 },
              ],
              countries: [
                { country: 'DE', scans: 24 },
                { country: 'unknown', scans: 7 },
              ],
              devices: [{ device: 'mobile', scans: 31 }],
              operating_systems: [
                { operating_system: 'iOS', scans: 19 },
                { operating_system: 'Android', scans: 12 },
              ],
              browsers: [{ browser: 'Safari', scans: 31 }],
              referrers: [{ referrer: 'direct', scans: 31 }],
            },
          },
        },
      },
      errors: { 404: ['no_such_code'] },
      async handle({ id, query, options }) {
        const read = await core.analytics.getCodeAnalytics({ id, ...integer(query, 'period') }, options);
        return { status: 200, body: { success: true, data: analyticsJson(read) } };
      },
    }),
  ];
}

import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import type { Pool } from 'pg';
import { failure } from '../../common/contract/errors.ts';
import { decodeId, encodeId, type IdPrefix } from '../../common/contract/ids.ts';
import {
  type AnalyticsService,
  type GetScanReportRequest,
  Granularity,
} from '../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import { accountOf } from '../access/caller.ts';
import type { Database } from '../db/database.ts';
import { archivesOf } from '../scans/archive/archive.ts';
import { DAY_MS, HOUR_MS } from '../scans/days.ts';
import { readScanPages, type StoredScan } from '../scans/reports/scan-pages.ts';
import { topCodes } from '../scans/reports/top-codes.ts';
import { alignWindow, parseWindow, type Window } from '../scans/reports/window.ts';
import { codeAnalytics, periodOf } from './code-analytics.ts';
import type { Codes } from './codes.ts';
import { figuresOf } from './figures.ts';

const REPORT_DAYS = 1_100;
const REPORT_HOURS = 32 * 24;
const TOP_DEFAULT = 25;
const TOP_MAX = 100;

/** What became of printed codes, for their account. */
export function analyticsService({
  database,
  codes,
}: {
  readonly database: Database;
  readonly codes: Codes;
}): ServiceImpl<typeof AnalyticsService> {
  const { pool } = database;

  return {
    async getCodeAnalytics({ id, period }, context) {
      const accountId = accountOf(context).id;
      const codeId = await liveCode(codes, accountId, id);
      const analytics = await codeAnalytics(database, { accountId, codeId, period: periodOf(period), now: Date.now() });
      return { id, ...analytics };
    },

    async getScanReport({ scope, granularity, ...request }, context) {
      const accountId = accountOf(context).id;
      const byHour = granularity === Granularity.HOUR;
      const window = byHour
        ? alignWindow(parseWindow(request), HOUR_MS, REPORT_HOURS, '32 days by hour')
        : alignWindow(parseWindow(request), DAY_MS, REPORT_DAYS, '1,100 days');
      if (byHour) await expectWholeDays(pool, window);
      const codeIds = await codesOf(codes, accountId, scope);
      const asked = { accountId, ...window, ...(codeIds && { codeIds }) };
      return { figures: await figuresOf(pool, asked, byHour ? 'hours' : 'days') };
    },

    async listTopCodes({ limit, ...request }, context) {
      const accountId = accountOf(context).id;
      const most = Math.min(Math.max(limit ?? TOP_DEFAULT, 1), TOP_MAX);
      const top = await topCodes(pool, accountId, { ...parseWindow(request), limit: most });
      const labels = await codes.labels(
        accountId,
        top.map(({ codeId }) => codeId),
      );
      return {
        codes: top.flatMap(({ codeId, scans }) => {
          const label = labels.get(codeId);
          if (!label) return [];
          const { shortCode, name } = label;
          return [{ codeId: encodeId('qr', codeId), shortCode, scans, ...(name !== null && { name }) }];
        }),
      };
    },

    async *exportScans({ codeId: id, ...request }, context) {
      const accountId = accountOf(context).id;
      const { from, to } = parseWindow(request);
      const codeId = id === undefined ? undefined : await liveCode(codes, accountId, id);
      const [archive] = await archivesOf(pool, { from, to: to - 1 });
      if (archive) {
        const sentence = `Scans of ${archive.month} are archived, one by one they can’t be exported any more.`;
        throw failure('INVALID_FIELD', `${sentence} Choose a window without that month.`);
      }
      const asked = { accountId, from, to, ...(codeId !== undefined && { codeId }) };
      for await (const page of readScanPages(pool, asked)) {
        // A caller that is gone leaves nobody to read the rest for.
        if (context.signal.aborted) return;
        yield { scans: page.map(toRecordedScan) };
      }
    },
  };
}

/** Breakdowns of parts of days are read from the scans themselves: refused where those were archived. */
async function expectWholeDays(pool: Pool, { from, to }: Window): Promise<void> {
  const parts = [from % DAY_MS === 0 ? [] : from, (to + HOUR_MS) % DAY_MS === 0 ? [] : to].flat();
  for (const time of parts) {
    const [archive] = await archivesOf(pool, { from: time, to: time });
    if (!archive) continue;
    const sentence = `Scans of ${archive.month} are archived: a report by hour that touches them must be of whole days.`;
    throw failure('INVALID_FIELD', sentence);
  }
}

async function liveCode(codes: Codes, accountId: string, id: string): Promise<string> {
  const codeId = decodeId('qr', id);
  if (codeId === undefined || !(await codes.exists(accountId, codeId))) throw notFound('code');
  return codeId;
}

/** The codes of a report; undefined means all of the account's. */
async function codesOf(
  codes: Codes,
  accountId: string,
  scope: GetScanReportRequest['scope'],
): Promise<readonly string[] | undefined> {
  switch (scope.case) {
    case undefined:
      return undefined;
    case 'codeId':
      return [await liveCode(codes, accountId, scope.value)];
    case 'folderId':
      return found(await codes.of(accountId, { folder: uuidOf('folder', scope.value) }), 'folder');
    case 'tagId':
      return found(await codes.of(accountId, { tag: uuidOf('tag', scope.value) }), 'tag');
    case 'batchId':
      return found(await codes.of(accountId, { batch: uuidOf('batch', scope.value) }), 'batch');
  }
}

function uuidOf(prefix: IdPrefix, id: string): string {
  return found(decodeId(prefix, id), prefix);
}

function found<Thing>(thing: Thing | undefined, called: string): Thing {
  if (thing === undefined) throw notFound(called);
  return thing;
}

function notFound(called: string) {
  return failure('NOT_FOUND', `There is no such ${called} on this account.`);
}

function toRecordedScan({ id, code_id, scanned_ms, operating_system, ...told }: StoredScan) {
  const { country, device, browser, referrer } = told;
  return {
    id,
    codeId: encodeId('qr', code_id),
    scannedAt: timestampFromMs(scanned_ms),
    country,
    device,
    operatingSystem: operating_system,
    browser,
    referrer,
  };
}

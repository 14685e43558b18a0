import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import type { Pool } from 'pg';
import { failure } from '../../common/contract/errors.ts';
import { decodeId, encodeId } from '../../common/contract/ids.ts';
import { clamp, PAGE_LIMIT } from '../../common/contract/ranges.ts';
import { DAY_MS, HOUR_MS } from '../../common/runtime/durations.ts';
import {
  type AnalyticsService,
  type GetScanReportRequest,
  Granularity,
} from '../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import { accountOf } from '../access/caller.ts';
import { batchExists, CODES_OF_BATCH } from '../batches/batch-lookups.ts';
import { notFound } from '../calls/not-found.ts';
import { CODES_IN_FOLDER, codeExists, codeTitles } from '../codes/code-lookups.ts';
import type { Database } from '../db/database.ts';
import { inSnapshot } from '../db/snapshot.ts';
import { archivesOf } from '../scans/archive/archive.ts';
import { type CodeSelection, oneCode } from '../scans/reports/code-selection.ts';
import { readScanPages, type StoredScan } from '../scans/reports/scan-pages.ts';
import { topCodes } from '../scans/reports/top-codes.ts';
import { alignWindow, parseWindow, type Window } from '../scans/reports/window.ts';
import { CODES_WITH_TAG, labelExists } from '../taxonomy/label-lookups.ts';
import { codeAnalytics, periodOf } from './code-analytics.ts';
import { figuresOf } from './figures.ts';

const REPORT_DAYS = 1_100;
const REPORT_HOURS = 32 * 24;

/** Reports on an account's scans. */
export function analyticsService(database: Database): ServiceImpl<typeof AnalyticsService> {
  const { pool } = database;

  return {
    async getCodeAnalytics({ id, period }, context) {
      const accountId = accountOf(context).id;
      const codeId = await liveCode(pool, accountId, id);
      const query = { accountId, codeId, period: periodOf(period), now: Date.now() };
      const analytics = await inSnapshot(pool, context.signal, (tx) => codeAnalytics(tx, query));
      return { id, ...analytics };
    },

    async getScanReport({ scope, granularity, ...request }, context) {
      const accountId = accountOf(context).id;
      const byHour = granularity === Granularity.HOUR;
      const window = byHour
        ? alignWindow(parseWindow(request), HOUR_MS, REPORT_HOURS, '32 days by hour')
        : alignWindow(parseWindow(request), DAY_MS, REPORT_DAYS, '1,100 days');
      const codes = await selectionOf(pool, accountId, scope);
      const query = { accountId, ...window, ...(codes && { codes }) };
      const figures = await inSnapshot(pool, context.signal, (tx) => figuresOf(tx, query, byHour ? 'hours' : 'days'));
      // After the figures and not in their snapshot: they may lack scans of a month that was archived before.
      if (byHour) await expectWholeDays(pool, window);
      return { figures };
    },

    async listTopCodes({ limit, ...request }, context) {
      const accountId = accountOf(context).id;
      const query = { ...parseWindow(request), limit: clamp(limit, PAGE_LIMIT) };
      const top = await inSnapshot(pool, context.signal, (tx) => topCodes(tx, accountId, query));
      const titles = await codeTitles(
        pool,
        accountId,
        top.map(({ codeId }) => codeId),
      );
      return {
        codes: top.flatMap(({ codeId, scans }) => {
          const title = titles.get(codeId);
          if (!title) return [];
          const { shortCode, name } = title;
          return [{ codeId: encodeId('qr', codeId), shortCode, scans, ...(name !== null && { name }) }];
        }),
      };
    },

    async *exportScans({ codeId: id, ...request }, context) {
      const accountId = accountOf(context).id;
      const { from, to } = parseWindow(request);
      const codeId = id === undefined ? undefined : await liveCode(pool, accountId, id);
      const selection = { accountId, from, to, ...(codeId !== undefined && { codeId }) };
      for await (const page of readScanPages(pool, selection)) {
        // Stop reading once the caller has disconnected.
        if (context.signal.aborted) return;
        yield { scans: page.map(toRecordedScan) };
      }
    },
  };
}

/** Breakdowns of partial days are read from the scans themselves, so they are rejected where those are archived. */
async function expectWholeDays(pool: Pool, { from, to }: Window): Promise<void> {
  const partialDays = [from % DAY_MS === 0 ? [] : from, (to + HOUR_MS) % DAY_MS === 0 ? [] : to].flat();
  for (const time of partialDays) {
    const [archive] = await archivesOf(pool, { from: time, to: time });
    if (!archive) continue;
    const sentence = `Scans of ${archive.month} are archived: an hourly report that includes them must cover whole days.`;
    throw failure('INVALID_FIELD', sentence);
  }
}

async function liveCode(pool: Pool, accountId: string, id: string): Promise<string> {
  const codeId = decodeId('qr', id);
  if (codeId === undefined || !(await codeExists(pool, accountId, codeId))) throw notFound('code');
  return codeId;
}

/** The codes of a report; undefined means all codes of the account. */
async function selectionOf(
  pool: Pool,
  accountId: string,
  scope: GetScanReportRequest['scope'],
): Promise<CodeSelection | undefined> {
  switch (scope.case) {
    case undefined:
      return undefined;
    case 'codeId':
      return oneCode(await liveCode(pool, accountId, scope.value));
    case 'folderId': {
      const id = decodeId('folder', scope.value);
      if (id === undefined || !(await labelExists(pool, 'folder', accountId, id))) throw notFound('folder');
      return { name: 'folder', query: CODES_IN_FOLDER, id };
    }
    case 'tagId': {
      const id = decodeId('tag', scope.value);
      if (id === undefined || !(await labelExists(pool, 'tag', accountId, id))) throw notFound('tag');
      return { name: 'tag', query: CODES_WITH_TAG, id };
    }
    case 'batchId': {
      const id = decodeId('batch', scope.value);
      if (id === undefined || !(await batchExists(pool, accountId, id))) throw notFound('batch');
      return { name: 'batch', query: CODES_OF_BATCH, id };
    }
  }
}

function toRecordedScan({ id, code_id, scanned_ms, operating_system, ...fields }: StoredScan) {
  const { target_version, target_rule, target_variant } = fields;
  const { country, device, browser, referrer } = fields;
  return {
    id,
    codeId: encodeId('qr', code_id),
    scannedAt: timestampFromMs(scanned_ms),
    country,
    device,
    operatingSystem: operating_system,
    browser,
    referrer,
    ...(target_version !== null && { targetVersion: target_version }),
    ...(target_rule !== null && { targetRule: target_rule }),
    ...(target_variant !== null && { targetVariant: target_variant }),
  };
}

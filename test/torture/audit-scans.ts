import type { Pool } from 'pg';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { decodeId } from '../../common/contract/ids.ts';
import { call } from './audit-changes.ts';
import type { Ledger, SentScan, TortureAccount } from './ledger.ts';
import type { Platform } from './platform.ts';

/** Analytics that are compared for each account, whose burst limit allows 120 requests a minute. */
const ANALYTICS_PER_ACCOUNT = 10;

export interface ScansAudit {
  readonly platform: Platform;
  readonly ledger: Ledger;
  readonly pool: Pool;
  readonly accounts: readonly TortureAccount[];
  /** Codes as the API returns them, by id. */
  readonly shown: ReadonlyMap<string, CodeJson>;
}

/**
 * Compares every scan that was sent with the recorded rows, and the rows with every counter. Returns the figures of
 * `scans audit`.
 */
export async function auditScans(audit: ScansAudit): Promise<Record<string, unknown>> {
  const { ledger, pool, platform } = audit;
  const { rows } = await pool.query<{ referrer: string; times: number }>(
    `select referrer, count(*)::integer as times from scans where referrer like 's%.torture.example' group by referrer`,
  );
  const recorded = new Map(rows.map(({ referrer, times }) => [referrer, times]));
  for (const scan of ledger.scans) {
    const times = recorded.get(scan.token) ?? 0;
    const what = `scan ${scan.token} of ${scan.code.key} at gateway ${scan.gateway}`;
    if (times > 1) ledger.find('duplicated', scan.endedAt, `${what} was recorded ${times} times`);
    if (times === 0 && scan.answered) {
      const loss = documentedLoss(ledger, scan);
      if (loss) ledger.find('documented', loss.to, what, Math.max(0, loss.cutAt - scan.endedAt));
      else ledger.find('lost', scan.endedAt, what);
    }
  }
  await expectCounters(audit);
  const figures = await platform.operator(['scans', 'audit', '--from', yesterday()]);
  const differences = figures.differences as unknown[];
  for (const difference of differences) ledger.find('wrong', Date.now(), `scans audit: ${JSON.stringify(difference)}`);
  const { answered, spooled, recorded: counted, dead_lettered } = figures as Record<string, number>;
  if (dead_lettered !== 0) ledger.find('wrong', Date.now(), `scans audit: ${dead_lettered} dead letters`);
  const lost = ledger.findings.filter(
    ({ kind, what }) => /^scan s/.test(what) && ['lost', 'documented'].includes(kind),
  );
  if (lost.length === 0 && (answered !== counted || spooled !== counted)) {
    ledger.find('wrong', Date.now(), `scans audit: ${answered} answered, ${spooled} spooled, ${counted} recorded`);
  }
  return figures;
}

function documentedLoss({ documentedLosses }: Ledger, { gateway, endedAt }: SentScan) {
  return documentedLosses.find((loss) => loss.gateway === gateway && loss.from <= endedAt && endedAt <= loss.to);
}

/** A code's `scan_count` and analytics equal the number of its rows. */
async function expectCounters({ platform, ledger, pool, accounts, shown }: ScansAudit): Promise<void> {
  const { rows } = await pool.query<{ code_id: string; scans: number }>(
    'select code_id, count(*)::integer as scans from scans group by code_id',
  );
  const counts = new Map(rows.map(({ code_id, scans }) => [code_id, scans]));
  const countOf = (id: string) => counts.get(decodeId('qr', id) ?? '') ?? 0;
  for (const { id, name, scan_count } of shown.values()) {
    const count = countOf(id);
    if (scan_count !== count) ledger.find('wrong', Date.now(), `scan_count of ${name} is ${scan_count} of ${count}`);
  }
  for (const account of accounts) {
    const scanned = ledger.codes
      .filter((code) => code.account === account && shown.has(code.id))
      .slice(0, ANALYTICS_PER_ACCOUNT);
    for (const { id, key } of scanned) {
      const { body } = await call(platform, account, `/qr-codes/${id}/analytics?period=2`);
      const { data } = JSON.parse(body) as { data: { total_scans: number; period_scans: number } };
      const count = countOf(id);
      if (data.total_scans !== count || data.period_scans !== count) {
        const reported = `${data.total_scans} in total and ${data.period_scans} in the period`;
        ledger.find('wrong', Date.now(), `analytics of ${key} say ${reported}, of ${count}`);
      }
    }
  }
}

/** A run may continue past midnight. */
function yesterday(): string {
  return new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
}

import type { PoolClient } from 'pg';
import { RULES_VERSION } from '../../../common/contract/user-agent.ts';
import { run, statement } from '../../../common/postgres/sql.ts';
import { arrayParameters, columnsOf, copyRows, listed, type RowOf } from '../../db/columns.ts';
import { rowArrays } from '../column-arrays.ts';
import { ScanEntity } from '../entities.ts';
import type { DecodedScan } from './decode-scan.ts';
import type { DerivedScan } from './derive.ts';

const COLUMNS = columnsOf(ScanEntity);

/** Index: primary key. An existing id is left unchanged and not returned. */
const insert = statement<{ id: string }>(
  'scans_insert',
  `insert into scans (${listed(COLUMNS)})
   select * from unnest(${arrayParameters(COLUMNS)})
   on conflict do nothing
   returning id`,
);

/**
 * Copies scans in that are all new; fails with a unique violation if one is already stored. Scans are derived while
 * they are written: Postgres processes the first ones while the last ones are still being derived.
 */
export async function copyScans(
  tx: PoolClient,
  scans: readonly DecodedScan[],
  derive: (scan: DecodedScan) => DerivedScan,
): Promise<DerivedScan[]> {
  const derived: DerivedScan[] = [];
  await copyRows(tx, 'scans', COLUMNS, scans, (each) => {
    const scan = derive(each);
    derived.push(scan);
    return [rowOf(scan)];
  });
  return derived;
}

/** Inserts the scans that are not stored yet and returns those. */
export async function insertScans(tx: PoolClient, scans: readonly DerivedScan[]): Promise<DerivedScan[]> {
  const inserted = await run(tx, insert, rowArrays(COLUMNS, scans.map(rowOf)));
  const ids = new Set(inserted.map(({ id }) => id));
  return scans.filter(({ id }) => ids.has(id));
}

function rowOf(scan: DerivedScan): RowOf<ScanEntity> {
  return {
    id: scan.id,
    scanned_at: new Date(scan.scannedAt),
    account_id: scan.accountId,
    code_id: scan.codeId,
    kind: scan.kind,
    rules: RULES_VERSION,
    country: scan.country,
    device: scan.device,
    operating_system: scan.operating_system,
    browser: scan.browser,
    referrer: scan.referrer,
    visitor: scan.visitor,
    target_version: scan.target?.version ?? null,
    target_rule: scan.target?.rule ?? null,
    target_variant: scan.target?.variant ?? null,
  };
}

import type { PoolClient } from 'pg';
import { run, statement } from '../../../common/postgres/sql.ts';
import { BinaryRows } from '../../db/binary-rows.ts';
import { columnArrays } from '../column-arrays.ts';
import type { DecodedScan } from './decode-scan.ts';
import type { DerivedScan } from './derive.ts';
import { RULES } from './user-agent.ts';

const COLUMNS = `id, scanned_at, account_id, code_id, kind, rules, country, device, operating_system, browser, referrer,
   visitor`;

// Primary key: an existing id is left unchanged and not returned.
const INSERT = statement<{ id: string }>(
  'insert_scans',
  `insert into scans (${COLUMNS})
   select id, scanned_at, account_id, code_id, kind, ${RULES}, country, device, operating_system, browser, referrer,
          visitor
   from unnest($1::uuid[], $2::timestamptz[], $3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::text[],
               $9::text[], $10::text[], $11::bigint[])
        as new_scans (id, scanned_at, account_id, code_id, kind, country, device, operating_system, browser, referrer,
                 visitor)
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
  await BinaryRows.copyEach(tx, `scans (${COLUMNS})`, scans, (rows, each) => {
    const scan = derive(each);
    derived.push(scan);
    rows.row(12);
    rows.uuid(scan.id);
    rows.time(scan.scannedAt);
    rows.uuid(scan.accountId);
    rows.uuid(scan.codeId);
    rows.text(scan.kind);
    rows.smallint(RULES);
    rows.text(scan.country);
    rows.text(scan.device);
    rows.text(scan.operating_system);
    rows.text(scan.browser);
    rows.text(scan.referrer);
    rows.bigint(scan.visitor);
  });
  return derived;
}

/** Inserts the scans that are not stored yet and returns those. */
export async function insertScans(tx: PoolClient, scans: readonly DerivedScan[]): Promise<DerivedScan[]> {
  const inserted = await run(
    tx,
    INSERT,
    columnArrays(
      scans,
      ({ id }) => id,
      ({ scannedAt }) => new Date(scannedAt).toISOString(),
      ({ accountId }) => accountId,
      ({ codeId }) => codeId,
      ({ kind }) => kind,
      ({ country }) => country,
      ({ device }) => device,
      ({ operating_system }) => operating_system,
      ({ browser }) => browser,
      ({ referrer }) => referrer,
      ({ visitor }) => visitor,
    ),
  );
  const ids = new Set(inserted.map(({ id }) => id));
  return scans.filter(({ id }) => ids.has(id));
}

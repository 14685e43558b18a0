import type { PoolClient } from 'pg';
import { run, statement } from '../db/sql.ts';
import { BinaryRows } from './binary-rows.ts';
import { columns } from './columns.ts';
import type { DerivedScan } from './derive.ts';
import { RULES } from './user-agent.ts';

const COLUMNS = `id, scanned_at, account_id, code_id, kind, rules, country, device, operating_system, browser, referrer,
   visitor`;

// Primary key: an id that is there stays as it is and is not returned.
const INSERT = statement<{ id: string }>(
  'insert_scans',
  `insert into scans (${COLUMNS})
   select id, scanned_at, account_id, code_id, kind, ${RULES}, country, device, operating_system, browser, referrer,
          visitor
   from unnest($1::uuid[], $2::timestamptz[], $3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::text[],
               $9::text[], $10::text[], $11::bigint[])
        as told (id, scanned_at, account_id, code_id, kind, country, device, operating_system, browser, referrer,
                 visitor)
   on conflict do nothing
   returning id`,
);

/** About what a scan takes in bytes. */
const ROW_BYTES = 200;

/** Inserts scans of which none is there; fails with a unique violation when one is. Gives each once, in order. */
export async function copyScans(tx: PoolClient, scans: readonly DerivedScan[]): Promise<DerivedScan[]> {
  const ordered = inOrder(scans);
  const rows = new BinaryRows(ordered.length * ROW_BYTES);
  for (const scan of ordered) {
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
  }
  await rows.copyInto(tx, `scans (${COLUMNS})`);
  return ordered;
}

/** Inserts the scans that are not there, and gives them. */
export async function insertScans(tx: PoolClient, scans: readonly DerivedScan[]): Promise<DerivedScan[]> {
  const ordered = inOrder(scans);
  const inserted = await run(
    tx,
    INSERT,
    columns(
      ordered,
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
  return ordered.filter(({ id }) => ids.has(id));
}

/** Each once, in the order in which everybody writes: nobody then waits for somebody in a circle. */
function inOrder(scans: readonly DerivedScan[]): DerivedScan[] {
  const ordered = [...scans].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
  return ordered.filter(({ id }, index) => id !== ordered[index - 1]?.id);
}

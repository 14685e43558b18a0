import type { PoolClient } from 'pg';
import { run, statement } from '../db/sql.ts';
import { BinaryRows } from './binary-rows.ts';
import { columns } from './columns.ts';
import type { DerivedScan } from './derive.ts';

// Primary key.
const INSERT = statement<{ key: string }>(
  'insert_visitors',
  `insert into scan_visitors (day, code_id, visitor)
   select * from unnest($1::date[], $2::uuid[], $3::bigint[])
   on conflict do nothing
   returning visitor || ' ' || code_id || ' ' || to_char(day, 'YYYY-MM-DD') as key`,
);

/**
 * Remembers who visited, and gives the scans that are their visitor's first on the code and day. Of a code's day that
 * is not known nobody is remembered: it fails with a unique violation when somebody is.
 */
export async function insertVisitors(
  tx: PoolClient,
  scans: readonly DerivedScan[],
  isKnown: (codeDay: string) => boolean,
): Promise<Set<DerivedScan>> {
  const firsts = new Set<DerivedScan>();
  const visits = new Map<string, DerivedScan>();
  for (const scan of scans) {
    if (!scan.recognisable) {
      firsts.add(scan);
      continue;
    }
    // What differs most comes first: these keys are sorted.
    const key = `${scan.visitor} ${scan.codeDay}`;
    const earlier = visits.get(key);
    if (!earlier || scan.scannedAt < earlier.scannedAt) visits.set(key, scan);
  }
  const fresh = new BinaryRows();
  const known: DerivedScan[] = [];
  for (const key of [...visits.keys()].sort()) {
    const scan = visits.get(key) as DerivedScan;
    if (isKnown(scan.codeDay)) {
      known.push(scan);
      continue;
    }
    fresh.row(3);
    fresh.day(scan.day);
    fresh.uuid(scan.codeId);
    fresh.bigint(scan.visitor);
    firsts.add(scan);
  }
  await fresh.copyInto(tx, 'scan_visitors (day, code_id, visitor)');
  if (known.length === 0) return firsts;
  const inserted = await run(
    tx,
    INSERT,
    columns(
      known,
      ({ day }) => day,
      ({ codeId }) => codeId,
      ({ visitor }) => visitor,
    ),
  );
  for (const { key } of inserted) firsts.add(visits.get(key) as DerivedScan);
  return firsts;
}

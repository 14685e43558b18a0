import type { PoolClient } from 'pg';
import { run, statement } from '../../../common/postgres/sql.ts';
import { BinaryRows } from '../../db/binary-rows.ts';
import { columns } from './columns.ts';
import type { DerivedScan } from './derive.ts';

// Primary key.
const INSERT = statement<{ code_day: string; visitor: string }>(
  'insert_visitors',
  `insert into scan_visitors (day, code_id, visitor)
   select * from unnest($1::date[], $2::uuid[], $3::bigint[])
   on conflict do nothing
   returning code_id || ' ' || to_char(day, 'YYYY-MM-DD') as code_day, visitor`,
);

/**
 * Remembers who visited, and tells which scans are their visitor's first on the code and day. Of a code's day that is
 * not known nobody is remembered: it fails with a unique violation when somebody is.
 */
export async function insertVisitors(
  tx: PoolClient,
  scans: readonly DerivedScan[],
  isKnown: (codeDay: string) => boolean,
): Promise<(scan: DerivedScan) => boolean> {
  /** The earliest of each visitor's scans on a code's day. */
  const visits = new Map<string, Map<bigint, DerivedScan>>();
  for (const scan of scans) {
    if (!scan.recognisable) continue;
    let visitors = visits.get(scan.codeDay);
    if (!visitors) {
      visitors = new Map();
      visits.set(scan.codeDay, visitors);
    }
    const earlier = visitors.get(scan.visitor);
    if (!earlier || scan.scannedAt < earlier.scannedAt) visitors.set(scan.visitor, scan);
  }
  const firsts = new Set<DerivedScan>();
  const [fresh, known]: [DerivedScan[], DerivedScan[]] = [[], []];
  // In the order of the primary key.
  for (const codeDay of [...visits.keys()].sort()) {
    const visitors = visits.get(codeDay);
    for (const visitor of BigInt64Array.from(visitors?.keys() ?? []).sort()) {
      const scan = visitors?.get(visitor) as DerivedScan;
      if (isKnown(codeDay)) {
        known.push(scan);
      } else {
        fresh.push(scan);
        firsts.add(scan);
      }
    }
  }
  await BinaryRows.copyEach(tx, 'scan_visitors (day, code_id, visitor)', fresh, (rows, scan) => {
    rows.row(3);
    rows.day(scan.day);
    rows.uuid(scan.codeId);
    rows.bigint(scan.visitor);
  });
  if (known.length > 0) {
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
    for (const { code_day, visitor } of inserted) {
      firsts.add(visits.get(code_day)?.get(BigInt(visitor)) as DerivedScan);
    }
  }
  return (scan) => !scan.recognisable || firsts.has(scan);
}

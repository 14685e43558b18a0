import type { PoolClient } from 'pg';
import { run, statement } from '../../../common/postgres/sql.ts';
import { BinaryRows } from '../../db/binary-rows.ts';
import { columnArrays } from '../column-arrays.ts';
import type { DerivedScan } from './derive.ts';

/** Index: primary key. */
const insert = statement<{ code_day: string; visitor: string }>(
  'scans_insert_visitors',
  `insert into scan_visitors (day, code_id, visitor)
   select * from unnest($1::date[], $2::uuid[], $3::bigint[])
   on conflict do nothing
   returning code_id || ' ' || to_char(day, 'YYYY-MM-DD') as code_day, visitor`,
);

/**
 * Stores visitors and returns a test for whether a scan is its visitor's first on that code and day. A code's day that
 * `isKnown` denies must have no stored visitors: otherwise this fails with a unique violation.
 */
export async function insertVisitors(
  tx: PoolClient,
  scans: readonly DerivedScan[],
  isKnown: (codeDay: string) => boolean,
): Promise<(scan: DerivedScan) => boolean> {
  /** For each code's day, each visitor's earliest scan. */
  const earliest = new Map<string, Map<bigint, DerivedScan>>();
  for (const scan of scans) {
    if (!scan.recognisable) continue;
    let visitors = earliest.get(scan.codeDay);
    if (!visitors) {
      visitors = new Map();
      earliest.set(scan.codeDay, visitors);
    }
    const other = visitors.get(scan.visitor);
    if (!other || scan.scannedAt < other.scannedAt) visitors.set(scan.visitor, scan);
  }
  const firsts = new Set<DerivedScan>();
  const [fresh, known]: [DerivedScan[], DerivedScan[]] = [[], []];
  // In the order of the primary key.
  for (const codeDay of [...earliest.keys()].sort()) {
    const visitors = earliest.get(codeDay);
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
      insert,
      columnArrays(
        known,
        ({ day }) => day,
        ({ codeId }) => codeId,
        ({ visitor }) => visitor,
      ),
    );
    for (const { code_day, visitor } of inserted) {
      firsts.add(earliest.get(code_day)?.get(BigInt(visitor)) as DerivedScan);
    }
  }
  return (scan) => !scan.recognisable || firsts.has(scan);
}

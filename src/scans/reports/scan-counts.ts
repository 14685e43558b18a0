import { type Queryable, run, statement } from '../../../common/postgres/sql.ts';

/**
 * A column that a query over `codes c` selects to read the total scans of its rows. Only through this fragment does SQL
 * of other modules access the table. Index: primary key.
 */
export const SCAN_COUNT = `
  coalesce((select t.scans from scan_totals t where t.code_id = c.id and t.account_id = c.account_id), 0) as scan_count`;

/** Index: primary key. */
const readTotals = statement<{ code_id: string; scans: string }>(
  'scans_read_totals',
  'select code_id, scans from scan_totals where account_id = $1 and code_id = any($2::uuid[])',
);

/** Total scans of these codes of an account, by code (UUIDs). A code that was never scanned is absent. */
export async function scanCounts(
  on: Queryable,
  accountId: string,
  codeIds: readonly string[],
): Promise<Map<string, number>> {
  const rows = await run(on, readTotals, [accountId, codeIds]);
  return new Map(rows.map(({ code_id, scans }) => [code_id, Number(scans)]));
}

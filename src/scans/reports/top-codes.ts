import { type Queryable, run, statement } from '../../../common/postgres/sql.ts';
import { dayOf } from '../days.ts';

// `scan_totals_of_account`, then the primary key of `scan_days`, one range per code.
const TOP_CODES = statement<{ code_id: string; scans: string }>(
  'top_codes',
  `select code_id, sum(d.scans)::text as scans
   from scan_totals t join scan_days d using (code_id)
   where t.account_id = $1 and d.account_id = $1 and d.day between $2 and $3
   group by code_id
   order by sum(d.scans) desc, code_id
   limit $4`,
);

/** The account's most scanned codes over the days from `from` to `to`, both included, in ms since 1970. */
export async function topCodes(
  on: Queryable,
  accountId: string,
  { from, to, limit }: { from: number; to: number; limit: number },
): Promise<{ codeId: string; scans: bigint }[]> {
  const rows = await run(on, TOP_CODES, [accountId, dayOf(from), dayOf(to), limit]);
  return rows.map(({ code_id, scans }) => ({ codeId: code_id, scans: BigInt(scans) }));
}

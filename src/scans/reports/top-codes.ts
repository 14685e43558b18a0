import { NIL_UUID } from '../../../common/contract/ids.ts';
import { type Queryable, run, statement } from '../../../common/postgres/sql.ts';
import { dayOf } from '../days.ts';

/**
 * Indexes: scan_totals_of_account, whose rows are sorted by their totals, then the primary key of scan_days, one range
 * per code.
 */
const findNextCodes = statement<{ code_id: string; total: string; scans: string }>(
  'scans_find_next_top_codes',
  `select code_id, total::text as total, scans::text as scans
   from (
     select code_id, scans as total from scan_totals
     where account_id = $1 and (scans < $4 or (scans = $4 and code_id > $5))
     order by scans desc, code_id limit $6
   ) t cross join lateral (
     select coalesce(sum(d.scans), 0) as scans from scan_days d
     where d.code_id = t.code_id and d.account_id = $1 and d.day between $2 and $3
   ) counted
   order by t.total desc, code_id`,
);

/** A position before the first code: more scans than any code, and an id before all others. */
const FIRST = { codeId: NIL_UUID, total: 2n ** 63n - 1n };
/** Minimum codes of the first read, which takes a few ms for a year. Each further read has twice as many. */
const FIRST_READ = 50;

/** A code with its scans in the window. */
interface TopCode {
  /** UUID. */
  readonly codeId: string;
  readonly scans: bigint;
}

/**
 * The account's most scanned codes over the days from `from` to `to`, both included, in ms since 1970; of codes with as
 * many scans, the one with the smaller id first. A code that was not scanned in the window is absent.
 *
 * Codes are read in the order of their lifetime scans, until no further code can have enough scans in the window. All
 * reads must be of one snapshot: otherwise a code that is scanned meanwhile could be missed by all of them.
 */
export async function topCodes(
  on: Queryable,
  accountId: string,
  { from, to, limit }: { from: number; to: number; limit: number },
): Promise<TopCode[]> {
  let top: TopCode[] = [];
  let last = FIRST;
  for (let size = Math.max(FIRST_READ, 2 * limit); ; size *= 2) {
    const values = [accountId, dayOf(from), dayOf(to), last.total, last.codeId, size];
    const codes = (await run(on, findNextCodes, values)).map(({ code_id, total, scans }) => ({
      codeId: code_id,
      total: BigInt(total),
      scans: BigInt(scans),
    }));
    const scanned = codes.filter(({ scans }) => scans > 0n);
    top = [...top, ...scanned].sort(byScans).slice(0, limit);
    last = codes.at(-1) ?? last;
    const lowest = top[limit - 1];
    if (codes.length < size || (lowest && byScans(lowest, { codeId: last.codeId, scans: last.total }) <= 0)) {
      return top.map(({ codeId, scans }) => ({ codeId, scans }));
    }
  }
}

function byScans(a: TopCode, b: TopCode): number {
  if (a.scans !== b.scans) return a.scans > b.scans ? -1 : 1;
  return a.codeId < b.codeId ? -1 : a.codeId > b.codeId ? 1 : 0;
}

import { failure } from '../../../common/contract/errors.ts';
import { NIL_UUID } from '../../../common/contract/ids.ts';
import { type Queryable, run, statement } from '../../../common/postgres/sql.ts';
import { archivesOf } from '../archive/archive.ts';

/** A stored scan. */
export interface StoredScan {
  /** UUID. */
  readonly id: string;
  /** UUID. */
  readonly code_id: string;
  /** ms since 1970. */
  readonly scanned_ms: number;
  readonly country: string;
  readonly device: string;
  readonly operating_system: string;
  readonly browser: string;
  readonly referrer: string;
  /** Null if the target had never been changed, as are the following two. */
  readonly target_version: number | null;
  readonly target_rule: number | null;
  readonly target_variant: string | null;
}

const COLUMNS = `id, code_id, (extract(epoch from scanned_at) * 1000)::float8 as scanned_ms, country, device,
   operating_system, browser, referrer, target_version, target_rule, target_variant`;
const PAGE_SIZE = 1_000;

/** Index: scans_of_account, from the end of the last page. */
const listScansOfAccount = statement<StoredScan>(
  'scans_list_of_account',
  `select ${COLUMNS} from scans
   where account_id = $1 and scanned_at < $2 and (scanned_at, id) > ($3, $4)
   order by scanned_at, id limit ${PAGE_SIZE}`,
);
/** Index: scans_of_code, from the end of the last page; `is true` leaves no other. */
const listScansOfCode = statement<StoredScan>(
  'scans_list_of_code',
  `select ${COLUMNS} from scans
   where (account_id = $1) is true and scanned_at < $2 and (scanned_at, id) > ($3, $4) and code_id = $5
   order by scanned_at, id limit ${PAGE_SIZE}`,
);

/**
 * Reads the scans of an account, or of one of its codes, from `from` until before `to` (ms since 1970), oldest first,
 * in pages of at most 1,000. No transaction or cursor is held between pages, so a slow consumer blocks nothing. Fails
 * with INVALID_FIELD if a month of the window is archived, or becomes archived before its scans were read.
 */
export async function* readScanPages(
  on: Queryable,
  { accountId, codeId, from, to }: { accountId: string; codeId?: string; from: number; to: number },
): AsyncGenerator<StoredScan[]> {
  let after = { scanned_ms: from, id: NIL_UUID };
  for (;;) {
    const values = [accountId, new Date(to), new Date(after.scanned_ms), after.id];
    const page = await (codeId === undefined
      ? run(on, listScansOfAccount, values)
      : run(on, listScansOfCode, [...values, codeId]));
    // After the page, which may lack scans of a month that was archived before.
    await expectNotArchived(on, { from: after.scanned_ms, to: to - 1 });
    const last = page.at(-1);
    if (last) yield page;
    if (!last || page.length < PAGE_SIZE) return;
    after = last;
  }
}

async function expectNotArchived(on: Queryable, window: { from: number; to: number }): Promise<void> {
  const [archive] = await archivesOf(on, window);
  if (!archive) return;
  const sentence = `Scans of ${archive.month} are archived and can no longer be exported individually.`;
  throw failure('INVALID_FIELD', `${sentence} Choose a window without that month.`);
}

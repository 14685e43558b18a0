/**
 * The codes of an account that a report counts, as a query: an account may have millions, whose ids stay in Postgres.
 */
export interface CodeSelection {
  /** What the codes have in common; `code`: it is a single one. */
  readonly name: 'code' | 'folder' | 'tag' | 'batch' | 'scanned';
  /** Selects the ids. $1 is the account and $2 `id`. */
  readonly query: string;
  /** UUID. */
  readonly id: string;
}

/** A single code. `id`: UUID. */
export const oneCode = (id: string): CodeSelection => ({ name: 'code', query: 'select $2::uuid', id });

/** All codes of an account that were ever scanned. Index: scan_totals_of_account. */
export const scannedCodes = (accountId: string): CodeSelection => ({
  name: 'scanned',
  query: 'select code_id from scan_totals where account_id = $1 and account_id = $2',
  id: accountId,
});

/** The part of a `with` that selects the codes once, for `CODES`. */
export const selecting = ({ query }: CodeSelection) => `selected as materialized (select array(${query}) as ids)`;

/**
 * The selected codes as `c`. Postgres does not know how many they are, so it reads one range of a primary key for each
 * in the tables that are joined. From a table that has an index of accounts as well, rows are selected by a lateral
 * part with `offset 0`: otherwise, while statistics don't say how many the account has, all of them could be read for
 * each code.
 */
export const CODES = 'unnest((select ids from selected)) as c (code_id)';

/**
 * The scans of a code in a `part` of the time, for `from`. Their account is left to the caller. Index: scans_of_code.
 */
export const scansOf = (codeId: string) => `lateral (
  select * from scans where code_id = ${codeId} and scanned_at >= part.since and scanned_at < part.until offset 0
)`;

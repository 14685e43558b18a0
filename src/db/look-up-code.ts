/**
 * The code of an account with an id, as a lateral item of a `from` clause. All arguments are SQL. Postgres looks each code
 * up, whatever the statistics are. A join could start from the account's codes for each row, as long as the statistics don't
 * say how many there are: with the 25,000 codes of a new batch, some statements took minutes. Index: codes_pkey or, for
 * `condition` on undeleted codes, codes_listed.
 */
export function lookUpCode(columns: string, id: string, accountId: string, condition = 'true'): string {
  return `lateral (select ${columns} from codes where id = ${id} and account_id = ${accountId} and ${condition} offset 0)`;
}

/** A join of such a code as `c`, with nulls in place of one that was deleted. */
export function joinUndeletedCode(columns: string, id: string, accountId: string): string {
  return `left join ${lookUpCode(columns, id, accountId, 'deleted_at is null')} c on true`;
}

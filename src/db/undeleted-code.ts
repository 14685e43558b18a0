/**
 * A join of the code with an id as `c`, with nulls in place of one that was deleted. All arguments are SQL. Postgres looks
 * each code up, whatever the statistics are: right after a batch, before there are some, a join started from the account's
 * codes, 25,000 for each of 500 rows, which took minutes. Index: codes_pkey or codes_listed.
 */
export function joinUndeletedCode(columns: string, id: string, accountId: string): string {
  return `left join lateral (
     select ${columns} from codes where id = ${id} and account_id = ${accountId} and deleted_at is null offset 0
   ) c on true`;
}

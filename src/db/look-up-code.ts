/**
 * The code of an account with an id, as a lateral item of a `from` clause. All arguments are SQL. Postgres looks each
 * code up, whatever the statistics are. A join could start from the account's codes for each row, as long as the
 * statistics don't say how many there are: with the 25,000 codes of a new batch, some statements took minutes. Whether
 * a code is deleted is asked outside, as partial indexes, such as codes_in_folder, would compete with the primary key.
 * Index: codes_pkey.
 */
export function lookUpCode(columns: string, id: string, accountId: string): string {
  return `lateral (select ${columns} from codes where id = ${id} and account_id = ${accountId} offset 0)`;
}

/** Codes that are looked up one by one; of more, a full join takes a third of the time. */
export const LOOKED_UP = 20_000;

/** A join of such a code as `c`, with nulls in place of one that was deleted. */
export function joinUndeletedCode(columns: string, id: string, accountId: string): string {
  return `left join ${lookUpCode(`${columns}, deleted_at`, id, accountId)} c on c.deleted_at is null`;
}

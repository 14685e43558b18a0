/**
 * Rows as the columns that `unnest` takes, each a Postgres array in its text form. pg's own conversion searches every
 * value for what must be escaped, one of the largest parts of this process's work per scan. Values here are ids, numbers,
 * times and names of a known alphabet: none can hold a quote, a backslash or a NUL.
 */
export function columns<Row>(
  rows: readonly Row[],
  ...of: readonly ((row: Row) => string | number | bigint)[]
): string[] {
  return of.map((value) => (rows.length === 0 ? '{}' : `{"${rows.map(value).join('","')}"}`));
}

/**
 * A query for the first of some rows in the order of a column, up to the one with which their values reach a size: no
 * number of large rows then exceeds a statement's timeout, or the memory of the process that reads them. The size of a
 * large value is known without reading it. `rows`: a query that has `columns`, `value` among them, in that order, and a
 * limit.
 */
export function upToBytes(rows: string, columns: string, order: string, bytes: number): string {
  return `select ${columns} from (
     select ${columns}, sum(octet_length(value)) over (order by ${order} rows between unbounded preceding and 1 preceding) as before
     from (${rows}) as listed
   ) as measured where coalesce(before, 0) < ${bytes} order by ${order}`;
}

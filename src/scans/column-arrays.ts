import type { Column } from '../db/columns.ts';

/**
 * Turns rows into one array per column for `unnest`, each in Postgres's text form. pg's own conversion searches every
 * value for characters to escape, which was one of the largest parts of this process's work per scan. Values here are
 * ids, numbers, times and names from a fixed alphabet: none can contain a quote, a backslash or a NUL.
 */
export function columnArrays<Row>(
  rows: readonly Row[],
  ...columns: readonly ((row: Row) => string | number | bigint)[]
): string[] {
  return columns.map((value) => (rows.length === 0 ? '{}' : `{"${rows.map(value).join('","')}"}`));
}

/** Like `columnArrays`, for columns of a table and objects whose properties are named after them. */
export function rowArrays(columns: readonly Column[], rows: readonly object[]): string[] {
  return columnArrays(
    rows as readonly Record<string, string | number | bigint | Date>[],
    ...columns.map(({ name }) => (row: Record<string, string | number | bigint | Date>) => {
      const value = row[name] as string | number | bigint | Date;
      return value instanceof Date ? value.toISOString() : value;
    }),
  );
}

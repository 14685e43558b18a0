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

/**
 * Like `columnArrays`, for columns of a table and objects whose properties are named after them. Columns that may be
 * null are left to pg's conversion: their values may be any text.
 */
export function rowArrays(columns: readonly Column[], rows: readonly object[]): unknown[] {
  const records = rows as readonly Record<string, string | number | bigint | Date>[];
  return columns.flatMap(({ name, nullable }): unknown[] => {
    if (nullable) return [records.map((row) => row[name])];
    return columnArrays(records, (row) => {
      const value = row[name] as string | number | bigint | Date;
      return value instanceof Date ? value.toISOString() : value;
    });
  });
}

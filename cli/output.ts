/** A record to show: a value for each column. */
export type Shown = Readonly<Record<string, string | number | boolean | null>>;

/** Prints one JSON value and nothing else, or lines for people. */
export function print(json: boolean, value: unknown, lines: () => string): void {
  console.log(json ? JSON.stringify(value) : lines());
}

/** `name  value`, a line each. */
export function fields(record: Shown): string {
  return table(Object.entries(record).map(([name, value]) => ({ name, value }))).replace(/^.*\n/, '');
}

/** Columns as wide as they have to be, with their names above. */
export function table(records: readonly Shown[]): string {
  const [first] = records;
  if (!first) return 'none';
  const names = Object.keys(first);
  const rows = [names, ...records.map((record) => names.map((name) => String(record[name] ?? '–')))];
  const widths = names.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

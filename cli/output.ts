import type { Command } from 'commander';
import stringWidth from 'string-width';

/** A record to print: a value for each column. */
export type DisplayRecord = Readonly<Record<string, string | number | boolean | null>>;

/** Returns a function that says, once a command of the group runs, whether `--json` was given. */
export function jsonOption(group: Command): () => boolean {
  return () => group.optsWithGlobals<{ json?: boolean }>().json === true;
}

/** Prints one JSON value and nothing else, or lines for people. */
export function print(json: boolean, value: unknown, lines: () => string): void {
  console.log(json ? JSON.stringify(value) : withoutControlCharacters(lines()));
}

/** The same for lines that contain colours. What customers named must be free of control characters in them. */
export function printStyled(json: boolean, value: unknown, lines: () => string): void {
  console.log(json ? JSON.stringify(value) : lines());
}

/** Removes control characters except newlines: names given by customers must not control a terminal. */
export function withoutControlCharacters(text: string): string {
  return text.replace(/[^\P{Cc}\n]/gu, '');
}

/** Text of customers on one line and without control characters: it must not look like a line of the program. */
export function onOneLine(text: string): string {
  return text.replace(/ *\p{Cc}[ \p{Cc}]*/gu, ' ');
}

/** Prints a record: as JSON, or as `fields`. */
export function printRecord(json: boolean, record: DisplayRecord): void {
  print(json, record, () => fields(record));
}

/** Prints records: as JSON, or as a `table`. */
export function printRecords(json: boolean, records: readonly DisplayRecord[]): void {
  print(json, records, () => table(records));
}

/** Formats one `name  value` per line. */
export function fields(record: DisplayRecord): string {
  return columns(Object.entries(record).map((row) => row.map(cellOf)));
}

/** Formats a table with a header, its columns as wide as necessary. */
export function table(records: readonly DisplayRecord[]): string {
  return fittedTable(records, {}, Number.POSITIVE_INFINITY);
}

/**
 * Formats a table that is at most `width` characters wide: the columns in `shortened` are truncated as far as
 * necessary, the first one first, but not below their number of characters.
 */
export function fittedTable(
  records: readonly DisplayRecord[],
  shortened: Readonly<Record<string, number>>,
  width = outputWidth(),
): string {
  const [first] = records;
  if (!first) return 'none';
  const names = Object.keys(first);
  const rows = [names, ...records.map((record) => names.map((name) => cellOf(record[name])))];
  const widths = widthsOf(rows);
  let excess = widths.reduce((sum, each) => sum + each, -GAP) - width;
  for (const [name, least] of Object.entries(shortened)) {
    const column = names.indexOf(name);
    const cut = Math.min(excess, (widths[column] ?? 0) - GAP - least);
    if (cut <= 0) continue;
    widths[column] = (widths[column] ?? 0) - cut;
    excess -= cut;
  }
  return columns(rows, widths);
}

/** The width of the terminal, or as `COLUMNS` says; unlimited where output is not a terminal. */
export function outputWidth(): number {
  return Number(process.env.COLUMNS) || process.stdout.columns || Number.POSITIVE_INFINITY;
}

/** Spaces between columns. */
const GAP = 2;

function cellOf(value: DisplayRecord[string] | undefined): string {
  return onOneLine(String(value ?? '–'));
}

/** Pads cells with spaces, so that lines can be cut and searched; wide characters count as two. */
function columns(rows: readonly (readonly string[])[], widths = widthsOf(rows)): string {
  const line = (row: readonly string[]) => row.map((cell, column) => fitted(cell, widths[column] ?? 0)).join('');
  return rows.map((row) => line(row).trimEnd()).join('\n');
}

/** The width of each column with the gap after it. */
function widthsOf(rows: readonly (readonly string[])[]): number[] {
  return (rows[0] ?? []).map(
    (_, column) => rows.reduce((widest, row) => Math.max(widest, stringWidth(row[column] ?? '')), 0) + GAP,
  );
}

/** A cell, truncated or padded to `width` characters, the gap included. */
function fitted(cell: string, width: number): string {
  const shown = stringWidth(cell) > width - GAP ? truncated(cell, width - GAP) : cell;
  return shown + ' '.repeat(width - stringWidth(shown));
}

function truncated(text: string, width: number): string {
  let kept = '';
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    if (stringWidth(kept + segment) >= width) break;
    kept += segment;
  }
  return `${kept}…`;
}

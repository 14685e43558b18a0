import Table from 'cli-table3';
import type { Command } from 'commander';

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

/** Removes control characters except newlines: names given by customers must not control a terminal. */
export function withoutControlCharacters(text: string): string {
  return text.replace(/[^\P{Cc}\n]/gu, '');
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
  return columns(Object.entries(record));
}

/** Formats a table with a header, its columns as wide as necessary. */
export function table(records: readonly DisplayRecord[]): string {
  const [first] = records;
  if (!first) return 'none';
  const names = Object.keys(first);
  return columns([names, ...records.map((record) => names.map((name) => record[name] ?? null))]);
}

/** Only spaces between columns, so that lines can be cut and searched; wide characters count as two. */
const CHARS = Object.fromEntries(
  ['top', 'bottom', 'left', 'right', 'mid', 'middle']
    .flatMap((side) => [side, `${side}-mid`, `${side}-left`, `${side}-right`, `${side}-mid-mid`])
    .concat('left-mid', 'mid-mid', 'right-mid', 'top-mid', 'bottom-mid')
    .map((name) => [name, '']),
);

function columns(rows: readonly (readonly DisplayRecord[string][])[]): string {
  const made = new Table({ chars: CHARS, style: { 'padding-left': 0, 'padding-right': 2, head: [], border: [] } });
  made.push(...rows.map((row) => row.map((cell) => String(cell ?? '–').replace(/\p{Cc}+/gu, ' '))));
  return made
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}

import Table from 'cli-table3';
import type { Command } from 'commander';

/** A record to show: a value for each column. */
export type Shown = Readonly<Record<string, string | number | boolean | null>>;

/** Tells, once a command runs, whether JSON is wanted. */
export function jsonWanted(program: Command): () => boolean {
  return () => program.opts<{ json?: boolean }>().json === true;
}

/** Prints one JSON value and nothing else, or lines for people. */
export function print(json: boolean, value: unknown, lines: () => string): void {
  console.log(json ? JSON.stringify(value) : harmless(lines()));
}

/** Text without control characters but new lines: what customers named something must not drive a terminal. */
export function harmless(text: string): string {
  return text.replace(/[^\P{Cc}\n]/gu, '');
}

/** Prints a record: as JSON, or as `fields`. */
export function printRecord(json: boolean, record: Shown): void {
  print(json, record, () => fields(record));
}

/** Prints records: as JSON, or as a `table`. */
export function printRecords(json: boolean, records: readonly Shown[]): void {
  print(json, records, () => table(records));
}

/** `name  value`, a line each. */
export function fields(record: Shown): string {
  return columns(Object.entries(record));
}

/** Columns as wide as they have to be, with their names above. */
export function table(records: readonly Shown[]): string {
  const [first] = records;
  if (!first) return 'none';
  const names = Object.keys(first);
  return columns([names, ...records.map((record) => names.map((name) => record[name] ?? null))]);
}

/** Nothing but spaces between columns, so that lines can be cut and searched; wide characters count as two. */
const CHARS = Object.fromEntries(
  ['top', 'bottom', 'left', 'right', 'mid', 'middle']
    .flatMap((side) => [side, `${side}-mid`, `${side}-left`, `${side}-right`, `${side}-mid-mid`])
    .concat('left-mid', 'mid-mid', 'right-mid', 'top-mid', 'bottom-mid')
    .map((name) => [name, '']),
);

function columns(rows: readonly (readonly Shown[string][])[]): string {
  const made = new Table({ chars: CHARS, style: { 'padding-left': 0, 'padding-right': 2, head: [], border: [] } });
  made.push(...rows.map((row) => row.map((cell) => String(cell ?? '–').replace(/\p{Cc}+/gu, ' '))));
  return made
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}

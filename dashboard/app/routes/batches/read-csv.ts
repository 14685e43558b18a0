import { CsvError, parse } from 'csv-parse/browser/esm/sync';
import { MAX_ROWS } from '../../../../common/contract/limits.ts';

/** A CSV file: its header and the rows below it. */
export interface CsvFile {
  readonly name: string;
  /** Identifies the file's content, well enough to tell whether it was changed. */
  readonly version: string;
  readonly header: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** The number that a spreadsheet shows beside each row: empty rows of the file count too, but are not in `rows`. */
  readonly numbers: readonly number[];
}

/** Why a file cannot be used. `line`: where it stops being CSV, from 1. */
export interface CsvProblem {
  readonly problem: 'unreadable' | 'empty' | 'too_many' | 'too_large' | 'malformed';
  readonly line?: number;
}

/** The largest file that is read: several times what 25,000 rows within their limits take. */
const MAX_BYTES = 32 * 1024 * 1024;

const DELIMITERS = [',', ';', '\t'] as const;

/** How much of a file is looked at to guess its delimiter, in characters. */
const GUESSED_CHARACTERS = 10_000;

/** With this line a file tells Excel its delimiter. */
const SEPARATOR_LINE = /^sep=(.)\r?\n/i;

/** Reads a CSV file with a header, as spreadsheets write it: separated by commas, semicolons or tabs. */
export async function readCsv(chosen: File | Promise<File>): Promise<CsvFile | CsvProblem> {
  let file: File;
  let text: string;
  try {
    file = await chosen;
    if (file.size > MAX_BYTES) return { problem: 'too_large' };
    text = decode(await file.arrayBuffer());
  } catch {
    // Changed or removed since it was chosen, or not the person's to read.
    return { problem: 'unreadable' };
  }
  const [separatorLine, separator] = SEPARATOR_LINE.exec(text) ?? [];
  const [numbers, records]: [number[], string[][]] = [[], []];
  try {
    parse(text, {
      delimiter: separator ?? guessDelimiter(text),
      from_line: separatorLine === undefined ? 1 : 2,
      relax_column_count: true,
      skip_empty_lines: true,
      trim: true,
      // A record may have several lines, so the lines of the file are not the rows of a spreadsheet.
      on_record: (cells: string[], { records: read, empty_lines }) => {
        if (cells.every((cell) => cell === '')) return;
        if (records.length > MAX_ROWS) throw new TooManyRows();
        records.push(cells.map(withoutApostrophe));
        numbers.push(read + empty_lines);
      },
    });
    const [header, ...rows] = records;
    if (!header || rows.length === 0) return { problem: 'empty' };
    const version = `${file.name} ${file.size} ${file.lastModified}`;
    return { name: file.name, version, header, rows, numbers: numbers.slice(1) };
  } catch (error) {
    if (error instanceof TooManyRows) return { problem: 'too_many' };
    if (!(error instanceof CsvError)) throw error;
    const { lines } = error as CsvError & { lines?: number };
    return lines === undefined ? { problem: 'malformed' } : { problem: 'malformed', line: lines };
  }
}

class TooManyRows extends Error {}

/**
 * A cell of a file that the dashboard has written, whose rows were corrected: without what `downloadCsv` put before it.
 */
function withoutApostrophe(cell: string): string {
  return /^'[=+\-@]/.test(cell) ? cell.slice(1) : cell;
}

/** Excel writes CSV in the system's legacy encoding unless it is asked for UTF-8, and "Unicode Text" in UTF-16. */
function decode(bytes: ArrayBuffer): string {
  const [first, second] = new Uint8Array(bytes);
  if (first === 0xff && second === 0xfe) return new TextDecoder('utf-16le').decode(bytes);
  if (first === 0xfe && second === 0xff) return new TextDecoder('utf-16be').decode(bytes);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder('windows-1252').decode(bytes);
  }
}

/** The delimiter that the header has most often, outside of quotes. */
function guessDelimiter(text: string): string | undefined {
  const [header = ''] = /(?:"[^"]*"|[^"\r\n])+/.exec(text.slice(0, GUESSED_CHARACTERS)) ?? [];
  const unquoted = header.replaceAll(/"[^"]*"/g, '');
  return DELIMITERS.toSorted((one, other) => countOf(unquoted, other) - countOf(unquoted, one))[0];
}

function countOf(text: string, part: string): number {
  return text.split(part).length - 1;
}

import { CsvError, parse } from 'csv-parse/browser/esm/sync';
import { MAX_BATCH_ROWS } from '../../../../common/contract/limits.ts';

/** A CSV file: its header and the rows below it. */
export interface CsvFile {
  readonly name: string;
  /** Identifies the file's content, well enough to tell whether it was changed. */
  readonly version: string;
  readonly header: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** Why a file cannot be used. `line`: where it stops being CSV, from 1. */
export interface CsvProblem {
  readonly problem: 'unreadable' | 'empty' | 'too_many' | 'too_large' | 'malformed';
  readonly line?: number;
}

/** The largest file that is read: several times what 25,000 rows within their limits take. */
const MAX_BYTES = 32 * 1024 * 1024;

const DELIMITERS = [',', ';', '\t'] as const;

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
  const [firstLine = ''] = text.split('\n', 1);
  const delimiter = DELIMITERS.toSorted((one, other) => countOf(firstLine, other) - countOf(firstLine, one))[0];
  try {
    const [header, ...rows] = parse(text, {
      bom: true,
      delimiter,
      relax_column_count: true,
      skip_empty_lines: true,
      skip_records_with_empty_values: true,
      trim: true,
      // The header, and one row more than a batch has.
      to: MAX_BATCH_ROWS + 2,
    });
    if (!header || rows.length === 0) return { problem: 'empty' };
    if (rows.length > MAX_BATCH_ROWS) return { problem: 'too_many' };
    return { name: file.name, version: `${file.name} ${file.size} ${file.lastModified}`, header, rows };
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const { lines } = error as CsvError & { lines?: number };
    return lines === undefined ? { problem: 'malformed' } : { problem: 'malformed', line: lines };
  }
}

/** Excel writes CSV in the system's legacy encoding unless it is asked for UTF-8. */
function decode(bytes: ArrayBuffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder('windows-1252').decode(bytes);
  }
}

function countOf(text: string, part: string): number {
  return text.split(part).length - 1;
}

import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { CsvError, parse } from 'csv-parse/sync';
import { MAX_ROWS } from '../common/contract/limits.ts';
import { policyFromJson } from '../common/targets/policy-json.ts';
import type { Policy } from '../proto/gen/signpost/targets/v1/policy_pb.ts';
import { type TargetRowInput, TargetRowInputSchema } from '../proto/gen/signpost/targets/v1/targets_pb.ts';
import { UsageError } from './core.ts';
import { readOptionFile } from './read-option-file.ts';

const CODE_COLUMNS = { id: 'id', short_code: 'shortCode', external_ref: 'externalRef' } as const;
const COLUMNS = [...Object.keys(CODE_COLUMNS), 'target_url', 'policy'];

type Cells = Readonly<Partial<Record<string, string>>>;

/** A row of the file. */
export interface FileRow {
  /** The number that a spreadsheet shows beside it. */
  readonly row: number;
  readonly input: TargetRowInput;
  /** Why it fails whatever the core knows; undefined if the core is to decide. */
  readonly problem?: string;
}

/**
 * Reads the rows of `target change --file`: CSV in UTF-8 with a header, separated by commas, or by semicolons if the
 * header is. Throws a `UsageError` if the file as a whole is not that.
 */
export async function readTargetRows(path: string): Promise<FileRow[]> {
  const rows = parsed(await readOptionFile('--file', path));
  if (rows.length === 0) throw new UsageError(`--file: ${path} has no rows below its header.`);
  if (rows.length > MAX_ROWS) {
    const most = MAX_ROWS.toLocaleString('en');
    throw new UsageError(`--file: ${path} has more than ${most} rows. Split it: a change takes at most that many.`);
  }
  return rows.map(({ record, info }) => ({ row: 1 + info.empty_lines + info.records, ...rowOf(record) }));
}

/** A record, and how many records and empty lines there were up to it. */
interface Parsed {
  readonly record: Cells;
  readonly info: { readonly records: number; readonly empty_lines: number };
}

function parsed(content: string): Parsed[] {
  const [header = ''] = content.split('\n', 1);
  try {
    return parse(content, {
      bom: true,
      columns: checkedColumns,
      delimiter: header.includes(';') && !header.includes(',') ? ';' : ',',
      info: true,
      skip_empty_lines: true,
      trim: true,
      // One more is enough to know that there are too many.
      to: MAX_ROWS + 1,
    });
  } catch (error) {
    if (error instanceof CsvError) throw new UsageError(`--file: ${error.message}.`, { cause: error });
    throw error;
  }
}

function checkedColumns(header: string[]): string[] {
  const names = header.map((name) => name.toLowerCase());
  const unknown = names.find((name) => !COLUMNS.includes(name));
  if (unknown !== undefined) {
    throw new UsageError(`--file: the column “${unknown}” is unknown. The columns are ${COLUMNS.join(', ')}.`);
  }
  // The parser would keep the last of them without a word.
  const repeated = names.find((name, index) => names.indexOf(name) !== index);
  if (repeated !== undefined) throw new UsageError(`--file: the column “${repeated}” occurs twice.`);
  if (
    !names.some((name) => name in CODE_COLUMNS) ||
    !names.some((name) => name === 'target_url' || name === 'policy')
  ) {
    throw new UsageError(
      '--file: the header must have a column id, short_code or external_ref, and a column target_url or policy.',
    );
  }
  return names;
}

/** What is sent of a row. One with a problem is sent without a target, so that the core counts it as failed too. */
function rowOf(cells: Cells): Pick<FileRow, 'input' | 'problem'> {
  const [code, another] = Object.entries(CODE_COLUMNS).flatMap(([column, field]) => {
    const value = cells[column];
    return value ? [{ case: field, value }] : [];
  });
  const failed = (problem: string, named: MessageInitShape<typeof TargetRowInputSchema> = {}) => ({
    input: create(TargetRowInputSchema, named),
    problem,
  });
  if (!code || another) return failed('Give the code in exactly one of the columns id, short_code and external_ref.');
  // An empty cell leaves what it stands for unchanged.
  const { target_url: targetUrl, policy: text } = cells;
  if (!targetUrl && !text) return failed('Give a target_url, a policy or both.', { code });
  const read = text ? policyOf(text) : undefined;
  if (read && 'problem' in read) return failed(read.problem, { code });
  return { input: create(TargetRowInputSchema, { code, ...(targetUrl ? { targetUrl } : {}), ...read }) };
}

function policyOf(text: string): { readonly policy: Policy } | { readonly problem: string } {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    return { problem: `policy: is not valid JSON: ${(error as Error).message}.` };
  }
  const read = policyFromJson(json);
  return 'problem' in read ? { problem: `policy: ${read.problem}` } : read;
}

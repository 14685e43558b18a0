import { create } from '@bufbuild/protobuf';
import { CsvError, parse } from 'csv-parse/sync';
import { policyFromJson } from '../common/targets/policy-json.ts';
import { type TargetRowInput, TargetRowInputSchema } from '../proto/gen/signpost/targets/v1/targets_pb.ts';
import { UsageError } from './core.ts';
import { readOptionFile } from './read-option-file.ts';

/** The most rows that the core accepts at once. */
const MAX_ROWS = 25_000;

const CODE_COLUMNS = { id: 'id', short_code: 'shortCode', external_ref: 'externalRef' } as const;
const COLUMNS = [...Object.keys(CODE_COLUMNS), 'target_url', 'policy'];

type Cells = Readonly<Partial<Record<string, string>>>;

/** The number that a spreadsheet shows beside a row; the header is row 1. `position`: from 0. */
export function spreadsheetRow(position: number): number {
  return position + 2;
}

/**
 * Reads the rows of `target change --file`: CSV in UTF-8 with a header, separated by commas, or by semicolons if the header
 * is. Throws a `UsageError` that names the first bad row.
 */
export async function readTargetRows(path: string): Promise<TargetRowInput[]> {
  const rows = parsed(await readOptionFile('--file', path));
  if (rows.length === 0) throw new UsageError(`--file: ${path} has no rows below its header.`);
  if (rows.length > MAX_ROWS) {
    throw new UsageError(`--file: ${path} has more than 25,000 rows. Split it: a change takes at most that many.`);
  }
  return rows.map((cells, position) => {
    const problem = (text: string) => new UsageError(`--file: row ${spreadsheetRow(position)}: ${text}`);
    return create(TargetRowInputSchema, { code: codeOf(cells, problem), ...targetOf(cells, problem) });
  });
}

function parsed(content: string): Cells[] {
  const [header = ''] = content.split('\n', 1);
  try {
    return parse(content, {
      bom: true,
      columns: checkedColumns,
      delimiter: header.includes(';') && !header.includes(',') ? ';' : ',',
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

type Problem = (text: string) => UsageError;

function codeOf(cells: Cells, problem: Problem) {
  const named = Object.entries(CODE_COLUMNS).flatMap(([column, field]) => {
    const value = cells[column];
    return value ? [{ case: field, value }] : [];
  });
  const [code, another] = named;
  if (!code || another) throw problem('give the code in exactly one of the columns id, short_code and external_ref.');
  return code;
}

/** An empty cell leaves what it stands for unchanged. */
function targetOf({ target_url: targetUrl, policy }: Cells, problem: Problem) {
  if (!targetUrl && !policy) throw problem('give a target_url, a policy or both.');
  return { ...(targetUrl ? { targetUrl } : {}), ...(policy ? { policy: policyOf(policy, problem) } : {}) };
}

function policyOf(text: string, problem: Problem) {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw problem(`the policy is not valid JSON: ${(error as Error).message}.`);
  }
  const read = policyFromJson(json);
  if ('problem' in read) throw problem(`policy: ${read.problem}`);
  return read.policy;
}

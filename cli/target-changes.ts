import { constants } from 'node:os';
import { create, toBinary } from '@bufbuild/protobuf';
import { ConnectError } from '@connectrpc/connect';
import { type Command, Option } from 'commander';
import { timeJson } from '../common/contract/code-json.ts';
import { MAX_ROWS_BYTES } from '../common/contract/limits.ts';
import { requiredField } from '../common/contract/required-field.ts';
import { OperatorError } from '../common/runtime/operator-error.ts';
import {
  type ChangeTargetsRequest,
  ChangeTargetsRequestSchema,
  type TargetChange,
  type TargetChangeRow,
  TargetChangeStatus,
  TargetRowStatus,
} from '../proto/gen/signpost/targets/v1/targets_pb.ts';
import type { CoreClients } from './clients.ts';
import { connectCore, UsageError } from './core.ts';
import { exitUnfulfilled } from './exit-codes.ts';
import { atLeastOne, example, ofAccount } from './options.ts';
import { type DisplayRecord, fields, fittedTable, jsonOption, print } from './output.ts';
import { readPages } from './pages.ts';
import { withProgress } from './progress.ts';
import { type FileRow, readTargetRows } from './target-rows.ts';
import { dateAndTime } from './times.ts';

const LOST = 'The connection to the core was lost.';

const { PENDING, CHANGED, UNCHANGED, FAILED, UNSPECIFIED } = TargetRowStatus;
const ROW_STATUS: Readonly<Record<string, TargetRowStatus>> = {
  pending: PENDING,
  changed: CHANGED,
  unchanged: UNCHANGED,
  failed: FAILED,
};
const ROW_STATUS_NAMES: Readonly<Record<number, string>> = Object.fromEntries(
  Object.entries(ROW_STATUS).map(([name, status]) => [status, name]),
);

interface ChangeOptions {
  readonly account: string;
  readonly file: string;
  readonly dryRun: boolean;
  readonly note?: string;
}

interface ChangesOptions {
  readonly account: string;
  readonly id?: string;
  readonly status?: string;
  readonly limit: number;
}

/** `target change` and `target changes`: change the targets of many codes at once. */
export function targetChangeCommands(target: Command): void {
  const json = jsonOption(target);

  const change = ofAccount(target.command('change')).description(
    'change the targets of up to 25,000 codes: a CSV file with the columns id, short_code or external_ref, and target_url, ' +
      'policy (JSON, {} for none) or both',
  );
  example(change, 'target change --account acct_… --file rows.csv --dry-run')
    .requiredOption('--file <file>', 'the CSV file; see docs/targets.md')
    .option('--dry-run', 'only report what would happen', false)
    .option('--note <text>', 'the reason, kept with each version')
    .action(async ({ account, file, dryRun, note = '' }: ChangeOptions) => {
      const rows = await readTargetRows(file);
      const request = create(ChangeTargetsRequestSchema, { rows: rows.map(({ input }) => input), dryRun, note });
      // The core reads no such message. Its error does not name the file, and is received a minute later if it is far
      // larger.
      if (toBinary(ChangeTargetsRequestSchema, request).length > MAX_ROWS_BYTES) {
        throw new UsageError(
          `--file: ${file} has more than 8 MiB of rows. Split it: a change takes at most that much.`,
        );
      }
      const { targets } = await connectCore(process.env, account);
      const completed = await completedChange(targets, request, json());
      const everything = { status: FAILED, limit: Number.POSITIVE_INFINITY };
      const failed = await rowsOf(targets, completed.id, everything, json()).catch((error) => {
        const shows = `target changes --id ${completed.id} --status failed shows the rows that failed.`;
        throw new OperatorError(`${problemOf(error)} The change is completed: ${shows}`, { cause: error });
      });
      if (failed.length > 0) exitUnfulfilled();
      printChange(json(), completed, failed, rows);
    });

  const changes = ofAccount(target.command('changes')).description(
    'list the changes of many targets, newest first, or the rows of one of them',
  );
  example(changes, 'target changes --account acct_… --id change_… --status failed')
    .option('--id <id>', 'change_…, to list its rows')
    .addOption(new Option('--status <status>', 'only rows of this status').choices(Object.keys(ROW_STATUS)))
    .option('--limit <number>', 'the maximum number to show', atLeastOne, 25)
    .action(async ({ account, id, status, limit }: ChangesOptions) => {
      if (id === undefined && status !== undefined) {
        throw new UsageError('--status: selects rows of a change; name the change by --id.');
      }
      const { targets } = await connectCore(process.env, account);
      if (id === undefined) {
        const listed = await readPages({ limit }, { json: json(), what: 'changes', command: changes }, async (page) => {
          const { changes: items, nextCursor } = await targets.listTargetChanges(page);
          return { items, nextCursor: nextCursor || undefined };
        });
        print(json(), listed.map(changeJson), () => fittedTable(listed.map(changeRow), { note: 10 }));
        return;
      }
      const { change: found } = await targets.getTargetChange({ id, limit: 1 });
      const asked = { status: ROW_STATUS[status ?? ''] ?? UNSPECIFIED, limit };
      const rows = await rowsOf(targets, id, asked, json(), changes);
      printChange(json(), requiredField(found, 'change'), rows);
    });
}

/** Sends a change and waits until it is completed; returns it. */
async function completedChange(
  targets: CoreClients['targets'],
  request: ChangeTargetsRequest,
  json: boolean,
): Promise<TargetChange> {
  // The core answers once all rows are processed, or after `BATCH_WINDOW_MS`.
  let goesOn = 'The change may go on: target changes lists it then.';
  const unwatched = (problem: string, cause?: unknown) => new OperatorError(`${problem} ${goesOn}`, { cause });
  // Ctrl-C ends the watching alone. On a terminal, the progress is on the line.
  const interrupted = () => {
    console.error(process.stderr.isTTY ? `\n${goesOn}` : goesOn);
    process.exit(128 + constants.signals.SIGINT);
  };
  process.once('SIGINT', interrupted);
  return withProgress({ json, what: 'Changing targets' }, async (update) => {
    const { id } = requiredField((await targets.changeTargets(request)).change, 'change');
    goesOn = `The change goes on: target changes --id ${id} shows it.`;
    try {
      for await (const { change } of targets.watchTargetChange({ id })) {
        const { status, counts: { total, pending } = { total: 0, pending: 0 } } = requiredField(change, 'change');
        update(total - pending, total);
        if (status === TargetChangeStatus.COMPLETED) return requiredField(change, 'change');
      }
    } catch (error) {
      throw unwatched(problemOf(error), error);
    }
    throw unwatched(LOST);
  }).finally(() => process.off('SIGINT', interrupted));
}

/** Why a call failed; throws an error that is not one of a call. */
function problemOf(error: unknown): string {
  if (!(error instanceof ConnectError)) throw error;
  // Errors of the core itself have details.
  return error.details.length > 0 ? error.rawMessage : LOST;
}

async function rowsOf(
  targets: CoreClients['targets'],
  id: string,
  { status, limit }: { readonly status: TargetRowStatus; readonly limit: number },
  json: boolean,
  command?: Command,
): Promise<TargetChangeRow[]> {
  return readPages({ limit }, { json, what: 'rows', ...(command && { command }) }, async (page) => {
    const { rows: items, nextCursor } = await targets.getTargetChange({ id, status, ...page });
    return { items, nextCursor: nextCursor || undefined };
  });
}

/** `file`: the rows of the file, if it is known. */
function printChange(
  json: boolean,
  change: TargetChange,
  rows: readonly TargetChangeRow[],
  file: readonly FileRow[] = [],
): void {
  const shown = rows.map((row) => rowJson(row, file[row.position]));
  print(json, { ...changeJson(change), rows: shown }, () => {
    const summary = fields(changeRow(change));
    return shown.length === 0 ? summary : `${summary}\n\n${fittedTable(shown, { reason: 20 })}`;
  });
}

function changeJson({ id, status, dryRun, note, counts, createdAt, completedAt }: TargetChange) {
  const { total = 0, pending = 0, changed = 0, unchanged = 0, failed = 0 } = counts ?? {};
  return {
    id,
    status: status === TargetChangeStatus.COMPLETED ? 'completed' : 'processing',
    dry_run: dryRun,
    note,
    ...{ total, pending, changed, unchanged, failed },
    created_at: timeJson(createdAt),
    completed_at: completedAt ? timeJson(completedAt) : null,
  };
}

function changeRow(change: TargetChange): DisplayRecord {
  const { created_at, completed_at: _completed, dry_run, note, ...shown } = changeJson(change);
  return { ...shown, dry_run: dry_run ? 'yes' : 'no', note: note || null, sent: dateAndTime(created_at, new Date()) };
}

function rowJson({ position, code, status, codeId, version, reason }: TargetChangeRow, inFile?: FileRow) {
  return {
    // If the file is not at hand, the row that it is in a file with a header and no empty lines.
    row: inFile?.row ?? position + 2,
    code: code.value ?? null,
    status: ROW_STATUS_NAMES[status] ?? null,
    code_id: codeId || null,
    version: version || null,
    reason: (inFile?.problem ?? reason) || null,
  };
}

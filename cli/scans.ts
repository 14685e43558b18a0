import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { connectCore, UsageError } from './core.ts';
import { exitUnfulfilled } from './exit-codes.ts';
import { destructive, example, expectConfirmed, ofAccount, startOfDay, time } from './options.ts';
import { fields, jsonOption, print, printRecord, table } from './output.ts';
import { withProgress } from './progress.ts';

/** `scans …`: audits the recording of scans, publishes them again, deletes them. */
export function scansCommands(scans: Command): void {
  const json = jsonOption(scans);
  const today = day(new Date().toISOString().slice(0, 10));
  const dayOption = (flags: string, what: string) => new Option(flags, what).argParser(day).default(today, 'today');

  example(scans.command('audit'), 'scans audit --from 2027-01-01 --to 2027-01-31')
    .description('count the scans of some days (UTC) at each stage, and compare all counters with the scans')
    .addOption(dayOption('--from <day>', 'first day, YYYY-MM-DD'))
    .addOption(dayOption('--to <day>', 'last day, inclusive'))
    .action(async ({ from, to }: { from: number; to: number }) => {
      if (from > to) throw new UsageError('--to: must not be before --from.');
      const core = await connectCore(process.env);
      const audit = await withProgress({ json: json(), what: 'Counting scans' }, () =>
        core.scans.auditScans({ from: timestampFromMs(from), to: timestampFromMs(to) }),
      );
      const figures = {
        answered: Number(audit.answered),
        spooled: Number(audit.spooled),
        published: Number(audit.published),
        recorded: Number(audit.recorded),
        duplicates: Number(audit.duplicates),
        dead_lettered: Number(audit.deadLettered),
        deleted: Number(audit.deleted),
        waiting: Number(audit.waiting),
        rows: Number(audit.rows),
        archived: Number(audit.archived),
        counted: Number(audit.counted),
      };
      const differences = audit.differences.map(({ codeId, day, counter, expected, counted }) => ({
        code_id: codeId ?? null,
        day: day ?? null,
        counter,
        expected: Number(expected),
        counted: Number(counted),
      }));
      if (differences.length > 0) exitUnfulfilled();
      print(json(), { ...figures, differences }, () => {
        const agreement = differences.length === 0 ? 'All counters agree with the scans.' : table(differences);
        return `${fields(figures)}\n\n${agreement}`;
      });
    });

  example(scans.command('reship'), 'scans reship --since 2027-01-31T02:00:00Z')
    .description(
      'on a gateway’s machine: publish again the scans that are still on its disk (see SPOOL_RETENTION_HOURS)',
    )
    .requiredOption('--since <time>', 'ignore older scans, such as 2026-11-20T09:00:00Z', time)
    .addHelpText('after', '\nIt needs the gateway’s DATA_DIR, DATABASE_URL and KAFKA_…, and no core.')
    .action(async ({ since }: { since: Date }) => {
      const published = await withProgress({ json: json(), what: 'Publishing' }, () => reship(since.getTime()));
      printRecord(json(), { ...published });
    });

  destructive(ofAccount(scans.command('delete')))
    .description('delete all scans of an account with their counts, including archives')
    .action(async ({ account, yes }: { account: string; yes: boolean }) => {
      await expectConfirmed({ yes }, `All scans of ${account} will be deleted, which can’t be undone.`);
      const core = await connectCore(process.env, account);
      await withProgress({ json: json(), what: 'Deleting scans' }, () => core.scans.deleteAccountScans({}));
      print(json(), { account_id: account, deleted: true }, () => `The scans of ${account} were deleted.`);
    });
}

/** Runs the gateway's program with the variables of this process; rethrows its error message. */
async function reship(since: number): Promise<Record<string, number>> {
  const program = join(import.meta.dirname, '../gateway/reship.ts');
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [program, '--since', String(since)]);
    return JSON.parse(stdout);
  } catch (error) {
    const { stderr } = error as { stderr?: string };
    throw stderr ? new OperatorError(stderr.trim(), { cause: error }) : error;
  }
}

/** Parses a UTC day, as ms since 1970. */
function day(text: string): number {
  const start = startOfDay(text);
  if (start === undefined) throw new InvalidArgumentError('It must be a day, YYYY-MM-DD.');
  return start;
}

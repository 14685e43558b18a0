import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { type Command, Option } from 'commander';
import { type Policy, PolicySchema } from '../proto/gen/signpost/targets/v1/policy_pb.ts';
import { connectCore, UsageError } from './core.ts';
import { atLeastOne, example, ofAccount, time, wholeNumber } from './options.ts';
import { jsonOption } from './output.ts';
import { type PageRange, readPages } from './pages.ts';
import { readPolicyFile } from './policy-file.ts';
import { targetChangeCommands } from './target-changes.ts';
import { printChanged, printPreview, printVersion, printVersions } from './target-output.ts';
import { targetRuleCommands } from './target-rules.ts';

const DEVICES = ['mobile', 'tablet', 'desktop', 'bot', 'other'];

interface OneCode {
  readonly account: string;
  readonly id: string;
}

interface TargetOptions {
  readonly targetUrl?: string | undefined;
  /** A file; false: no policy. */
  readonly policy?: string | false | undefined;
}

interface ChangeOptions extends OneCode {
  readonly note?: string | undefined;
  readonly expectedVersion?: number | undefined;
}

interface PreviewOptions extends OneCode, TargetOptions {
  readonly at?: Date;
  readonly country?: string;
  readonly language?: string;
  readonly device?: string;
  readonly operatingSystem?: string;
  readonly visitor?: string;
  readonly query?: string;
}

/** `target …`: changes and explains what scans of dynamic codes lead to. */
export function targetCommands(target: Command): void {
  const json = jsonOption(target);
  const one = (name: string) => ofAccount(target.command(name)).requiredOption('--id <id>', 'qr_…');

  const set = changing(withTarget(one('set'))).description(
    'set the target URL, the policy, or both, as one version; options not given stay unchanged',
  );
  example(set, 'target set --account acct_… --id qr_… --policy menu.json --note "Lunch on weekdays"').action(
    async ({ account, id, note, expectedVersion, ...options }: ChangeOptions & TargetOptions) => {
      const wanted = await targetOf(options);
      if (Object.keys(wanted).length === 0) {
        throw new UsageError('Give at least one of --target-url, --policy and --no-policy.');
      }
      const { targets } = await connectCore(process.env, account);
      const { target } = await targets.setTarget({ id, ...wanted, ...changeOf(note, expectedVersion) });
      printChanged(json(), target);
    },
  );

  targetRuleCommands(target);
  targetChangeCommands(target);

  one('show')
    .description('show the current target: its URL and the rules that precede it')
    .action(async ({ account, id }: OneCode) => {
      const { targets } = await connectCore(process.env, account);
      printVersion(json(), (await targets.getTarget({ id })).target);
    });

  one('history')
    .description('list the versions of the target, newest first')
    .option('--limit <versions>', 'the maximum number to show', atLeastOne)
    .action(async ({ account, id, ...range }: OneCode & PageRange) => {
      const { targets } = await connectCore(process.env, account);
      const versions = await readPages(range, { json: json(), what: 'versions' }, async (page) => {
        const { versions: items, nextCursor } = await targets.listTargetVersions({ id, ...page });
        return { items, nextCursor: nextCursor || undefined };
      });
      printVersions(json(), versions);
    });

  const at = one('at').description('show the target as it was at some time');
  example(at, 'target at --account acct_… --id qr_… --at 2027-01-04T11:30:00Z')
    .requiredOption('--at <time>', 'the time, such as 2027-01-04T11:30:00Z', time)
    .action(async ({ account, id, at }: OneCode & { at: Date }) => {
      const { targets } = await connectCore(process.env, account);
      printVersion(json(), (await targets.getTargetAt({ id, at: timestampFromDate(at) })).target);
    });

  const rollback = changing(one('rollback')).description('set the target to that of an earlier version, as a new one');
  example(rollback, 'target rollback --account acct_… --id qr_… --to 3')
    .requiredOption('--to <version>', 'the version to restore', wholeNumber)
    .action(async ({ account, id, to, note, expectedVersion }: ChangeOptions & { to: number }) => {
      const { targets } = await connectCore(process.env, account);
      const rolledBack = await targets.rollBackTarget({ id, version: to, ...changeOf(note, expectedVersion) });
      printChanged(json(), rolledBack.target);
    });

  const preview = withTarget(one('preview'))
    .description(
      'show what a scan would lead to if the code were not paused, and which rule decides; nothing is changed or counted',
    )
    .option('--at <time>', 'when the code is scanned (default: now)', time)
    .option('--country <code>', 'the visitor’s country: ISO 3166-1 alpha-2 in capitals (default: unknown)')
    .option('--language <tag>', 'the language that the visitor prefers, such as fr-CA (default: none)')
    .addOption(new Option('--device <device>', 'the visitor’s device (default: other)').choices(DEVICES))
    .option('--operating-system <name>', 'such as ios (default: unknown)')
    .option('--visitor <text>', 'any text that stands for a visitor, who gets one variant of a split')
    .option('--query <query>', 'the query of the scan URL, without ?');
  example(preview, 'target preview --account acct_… --id qr_… --at 2027-01-04T11:30:00Z --country DE').action(
    async ({ account, id, at, targetUrl, policy, ...visitor }: PreviewOptions) => {
      const unsaved = await targetOf({ targetUrl, policy });
      const { targets } = await connectCore(process.env, account);
      const instant = at === undefined ? {} : { at: timestampFromDate(at) };
      printPreview(json(), await targets.previewTarget({ id, ...instant, ...unsaved, ...visitor }));
    },
  );
}

/** Adds the options of a target that is not set yet. */
function withTarget(command: Command): Command {
  return command
    .option('--target-url <url>', 'the target of scans for which no rule decides')
    .option('--policy <file>', 'a policy as JSON; see docs/targets.md')
    .option('--no-policy', 'without a policy');
}

/** Adds the options of a change. */
function changing(command: Command): Command {
  return command
    .option('--note <text>', 'the reason, kept with the version')
    .option('--expected-version <version>', 'fail if the target is at another version', wholeNumber);
}

async function targetOf({ targetUrl, policy }: TargetOptions): Promise<{ targetUrl?: string; policy?: Policy }> {
  return {
    ...(targetUrl === undefined ? {} : { targetUrl }),
    ...(policy === undefined ? {} : { policy: policy === false ? create(PolicySchema) : await readPolicyFile(policy) }),
  };
}

function changeOf(note = '', expectedVersion?: number) {
  return { note, ...(expectedVersion === undefined ? {} : { expectedVersion }) };
}

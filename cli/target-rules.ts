import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { ConnectError } from '@connectrpc/connect';
import { type Command, InvalidArgumentError } from 'commander';
import { requiredField } from '../common/contract/required-field.ts';
import { OperatorError } from '../common/runtime/operator-error.ts';
import {
  type Conditions,
  type ConditionsSchema,
  type Policy,
  PolicySchema,
  type Rule,
  RuleSchema,
} from '../proto/gen/signpost/targets/v1/policy_pb.ts';
import { connectCore, UsageError } from './core.ts';
import { policyPath } from './option-names.ts';
import { example, ofAccount, splitList, time } from './options.ts';
import { jsonOption } from './output.ts';
import { printChanged } from './target-output.ts';

interface RuleOptions {
  readonly account: string;
  readonly id: string;
  readonly name?: string;
  readonly note?: string;
}

interface ScheduleOptions extends RuleOptions {
  readonly targetUrl: string;
  readonly from?: Date;
  readonly until?: Date;
  readonly timeZone?: string;
  readonly days?: string[];
  readonly fromTime?: string;
  readonly untilTime?: string;
}

interface Variant {
  readonly label: string;
  readonly weight: number;
  readonly targetUrl: string;
}

/** `target schedule` and `split`: add a rule to a policy, without a file. */
export function targetRuleCommands(target: Command): void {
  const json = jsonOption(target);
  const adding = (name: string) =>
    ofAccount(target.command(name))
      .requiredOption('--id <id>', 'qr_…')
      .option('--name <name>', 'a name of the rule, shown in previews and lists')
      .option('--note <text>', 'the reason, kept with the version');

  const schedule = adding('schedule')
    .description('add a rule that leads to a URL at certain times, before all other rules')
    .requiredOption('--target-url <url>', 'the target at these times')
    .option('--from <time>', 'from this time on, such as 2027-01-04T09:00:00Z', time)
    .option('--until <time>', 'until this time', time)
    .option('--time-zone <zone>', 'for times of a week: a name such as Europe/Berlin')
    .option('--days <days>', 'the days on which they begin, such as mon,tue', splitList)
    .option('--from-time <time>', 'when they begin, such as 11:00')
    .option('--until-time <time>', 'when they end; on the next day if it is not later');
  example(
    schedule,
    'target schedule --account acct_… --id qr_… --target-url https://example.com/lunch \\\n' +
      '      --time-zone Europe/Berlin --days mon,tue,wed,thu,fri --from-time 11:00 --until-time 14:30',
  ).action(async (options: ScheduleOptions) => {
    const when = timesOf(options);
    const rule = create(RuleSchema, {
      name: options.name ?? '',
      when,
      outcome: { kind: { case: 'targetUrl', value: options.targetUrl } },
    });
    await addRule(rule, options, json(), (rules) => [rule, ...rules]);
  });

  const split = adding('split')
    .description('divide the visitors for whom no other rule decides among targets; replaces an earlier such split')
    .requiredOption('--variant <label=weight=url...>', 'a target and its weight, 2 to 10 times', variant);
  example(
    split,
    'target split --account acct_… --id qr_… --variant a=3=https://example.com/a b=1=https://example.com/b',
  ).action(async (options: RuleOptions & { variant: Variant[] }) => {
    const rule = create(RuleSchema, {
      name: options.name ?? '',
      outcome: { kind: { case: 'split', value: { variants: options.variant } } },
    });
    await addRule(rule, options, json(), (rules) => {
      const conditional = isGeneralSplit(rules.at(-1)) ? rules.slice(0, -1) : rules;
      const general = conditional.findIndex((each) => isUnconditional(each.when)) + 1;
      if (general > 0) {
        throw new OperatorError(`Rule ${general} has no conditions, so that rules after it would never decide.`);
      }
      return [...conditional, rule];
    });
  });
}

/** Sets the target with a further rule, unless somebody else changes it meanwhile, and prints it. */
async function addRule(
  rule: Rule,
  { account, id, note = '' }: RuleOptions,
  json: boolean,
  change: (rules: readonly Rule[]) => Rule[],
): Promise<void> {
  const { targets } = await connectCore(process.env, account);
  const { version, policy = create(PolicySchema) } = requiredField((await targets.getTarget({ id })).target, 'target');
  const changed: Policy = { ...policy, rules: change(policy.rules) };
  const setting = targets.setTarget({ id, policy: changed, note, expectedVersion: version });
  const { target } = await setting.catch((error) => {
    throw aboutOtherRule(error, changed.rules.indexOf(rule)) ?? error;
  });
  printChanged(json, target);
}

/**
 * An error about a rule that the policy already had, which no option of the command sets; undefined for other errors.
 */
function aboutOtherRule(error: unknown, added: number): OperatorError | undefined {
  if (!(error instanceof ConnectError)) return undefined;
  const [, field = '', index, description] = /^(policy\.rules\[(\d+)\][\w.[\]]*): (.+)$/s.exec(error.rawMessage) ?? [];
  if (index === undefined || Number(index) === added) return undefined;
  // As the policy that `target show` prints has it, without the new rule.
  const before = Number(index) > added ? Number(index) - 1 : Number(index);
  const path = policyPath(field.replace(`[${index}]`, `[${before}]`));
  return new OperatorError(`policy.${path}${description}`, { cause: error });
}

function timesOf({
  from,
  until,
  timeZone,
  days,
  fromTime,
  untilTime,
}: ScheduleOptions): MessageInitShape<typeof ConditionsSchema> {
  const weekly = [timeZone, days, fromTime, untilTime].filter((option) => option !== undefined).length;
  if (weekly !== 0 && weekly !== 4) {
    throw new UsageError('Give all of --time-zone, --days, --from-time and --until-time, or none of them.');
  }
  if (weekly === 0 && from === undefined && until === undefined) {
    throw new UsageError('Say when, by --from, --until or both, or by times of a week.');
  }
  return {
    ...(from === undefined ? {} : { from: timestampFromDate(from) }),
    ...(until === undefined ? {} : { until: timestampFromDate(until) }),
    ...(timeZone === undefined
      ? {}
      : { weekly: { timeZone, days: days ?? [], from: fromTime ?? '', until: untilTime ?? '' } }),
  };
}

function isGeneralSplit(rule: Rule | undefined): boolean {
  return rule !== undefined && rule.outcome?.kind.case === 'split' && isUnconditional(rule.when);
}

function isUnconditional(when: Conditions | undefined): boolean {
  if (!when) return true;
  const { from, until, weekly, countries, languages, devices, operatingSystems } = when;
  return (
    !from && !until && !weekly && [countries, languages, devices, operatingSystems].every(({ length }) => length === 0)
  );
}

function variant(text: string, before: readonly Variant[] = []): Variant[] {
  const [, label, weight, targetUrl] = /^([^=]+)=(\d{1,9})=(.+)$/s.exec(text) ?? [];
  if (label === undefined || weight === undefined || targetUrl === undefined) {
    throw new InvalidArgumentError('It must be LABEL=WEIGHT=URL, such as a=3=https://example.com/a.');
  }
  return [...before, { label, weight: Number(weight), targetUrl }];
}

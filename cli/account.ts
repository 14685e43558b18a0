import type { Command } from 'commander';
import { InvalidArgumentError, Option } from 'commander';
import { type Account, Plan, type Usage } from '../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { timeJson } from '../src/contract/code-json.ts';
import { connectCore } from './core.ts';
import { fields, print, type Shown, table } from './output.ts';

const PLANS = { free: Plan.FREE, business: Plan.BUSINESS, scale: Plan.SCALE, enterprise: Plan.ENTERPRISE } as const;
type PlanName = keyof typeof PLANS;

interface CreateOptions {
  readonly name: string;
  readonly plan: PlanName;
  readonly monthlyQuota?: number;
  readonly qrLimit?: number;
  readonly batchLimit?: number;
}

/** `account …`: accounts, their plans, their usage. */
export function accountCommands(program: Command): void {
  const json = () => program.opts<{ json?: boolean }>().json === true;
  const account = program.command('account').description('accounts, their plans, their usage');

  account
    .command('create')
    .description('create an account; its API key is shown here and never again')
    .requiredOption('--name <name>', 'what the account is called')
    .addOption(new Option('--plan <plan>', 'what it pays for').choices(Object.keys(PLANS)).makeOptionMandatory())
    .option('--monthly-quota <requests>', 'requests a month, instead of the plan’s', wholeNumber)
    .option('--qr-limit <codes>', 'live dynamic codes, instead of the plan’s', wholeNumber)
    .option('--batch-limit <rows>', 'rows a batch, instead of the plan’s', wholeNumber)
    .addHelpText('after', '\nExample:\n  $ npm run signpost -- account create --name Trattoria --plan business')
    .action(async ({ name, plan, monthlyQuota, qrLimit, batchLimit }: CreateOptions) => {
      const { accounts } = await connectCore(process.env);
      const overrides = {
        ...(monthlyQuota === undefined ? {} : { monthlyQuota: BigInt(monthlyQuota) }),
        ...(qrLimit === undefined ? {} : { codeLimit: BigInt(qrLimit) }),
        ...(batchLimit === undefined ? {} : { batchLimit }),
      };
      const created = await accounts.createAccount({ name, plan: PLANS[plan], overrides });
      const shown = { account_id: created.account?.id ?? '', api_key: created.apiKey };
      print(json(), shown, () => fields(shown));
    });

  account
    .command('show')
    .description('one account: its plan and what it has used')
    .requiredOption('--account <id>', 'acct_…')
    .action(async (options: { account: string }) => {
      const { accounts } = await connectCore(process.env, options.account);
      const { account: found, usage } = await accounts.getAccount({});
      const shown = { ...(found ? accountShown(found) : {}), ...(usage ? usageShown(usage) : {}) };
      print(json(), shown, () => fields(shown));
    });

  account
    .command('list')
    .description('all accounts, newest first')
    .option('--limit <accounts>', 'at most so many', wholeNumber)
    .option('--offset <accounts>', 'leave out so many', wholeNumber)
    .action(async (page: { limit?: number; offset?: number }) => {
      const { accounts } = await connectCore(process.env);
      const listed = (await accounts.listAccounts(page)).accounts.map(accountShown);
      print(json(), listed, () => table(listed));
    });
}

function accountShown({ id, name, plan, createdAt, closedAt }: Account): Shown {
  const planName = Object.entries(PLANS).find(([, value]) => value === plan)?.[0] ?? '';
  return { id, name, plan: planName, created_at: timeJson(createdAt), closed_at: closedAt ? timeJson(closedAt) : null };
}

function usageShown({ monthlyQuota, requestsUsed, codeLimit, codesUsed, batchLimit }: Usage): Shown {
  return {
    requests_used: Number(requestsUsed),
    monthly_quota: monthlyQuota === undefined ? 'unlimited' : Number(monthlyQuota),
    codes_used: Number(codesUsed),
    qr_limit: codeLimit === undefined ? 'unlimited' : Number(codeLimit),
    batch_limit: batchLimit,
  };
}

function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}

import { type Command, InvalidArgumentError, Option } from 'commander';
import { timeJson } from '../common/contract/code-json.ts';
import { nameOf, namesOf, PLAN_BY_NAME, type PlanName } from '../common/contract/names.ts';
import { requiredField } from '../common/contract/required-field.ts';
import type { Account, AuditEntry, Usage } from '../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { connectCore, UsageError } from './core.ts';
import { destructive, example, expectConfirmed, ofAccount, paged, wholeNumber } from './options.ts';
import { type DisplayRecord, jsonOption, print, printRecord, printRecords, table } from './output.ts';
import { type PageRange, readPages } from './pages.ts';
import { withProgress } from './progress.ts';

interface Limits {
  readonly monthlyQuota?: number | 'plan';
  readonly qrLimit?: number | 'plan';
  readonly batchLimit?: number | 'plan';
}

/** `account …`: manages accounts, their plans, usage and audit log. */
export function accountCommands(account: Command): void {
  const json = jsonOption(account);

  const create = account
    .command('create')
    .description('create an account; its API key is shown only once')
    .requiredOption('--name <name>', 'the name of the account')
    .addOption(plan().makeOptionMandatory());
  example(limits(create, wholeNumber), 'account create --name Trattoria --plan business').action(
    async ({ name, plan, ...asked }: { name: string; plan: PlanName } & Limits) => {
      const { accounts } = await connectCore(process.env);
      const created = await accounts.createAccount({
        name,
        plan: PLAN_BY_NAME[plan],
        overrides: overridden({}, asked),
      });
      printRecord(json(), { account_id: requiredField(created.account, 'account').id, api_key: created.apiKey });
    },
  );

  ofAccount(account.command('show'))
    .description('show an account: its plan and usage')
    .action(async (options: { account: string }) => {
      const { accounts } = await connectCore(process.env, options.account);
      const { account: found, usage } = await accounts.getAccount({});
      printRecord(json(), { ...accountShown(found), ...(usage ? usageShown(usage) : {}) });
    });

  paged(account.command('list'), 'accounts')
    .description('list all accounts, newest first')
    .action(async (asked: PageRange) => {
      const { accounts } = await connectCore(process.env);
      const all = await readPages(asked, { json: json(), what: 'accounts' }, async (page) => {
        const { accounts: items, nextCursor } = await accounts.listAccounts(page);
        return { items, nextCursor };
      });
      printRecords(json(), all.map(accountShown));
    });

  const update = ofAccount(account.command('update'))
    .description('change an account’s name, plan or overrides; the value `plan` removes an override')
    .option('--name <name>', 'the name of the account')
    .addOption(plan());
  example(limits(update, numberOrPlan), 'account update --account acct_… --plan scale --qr-limit plan').action(
    async (options: { account: string; name?: string; plan?: PlanName } & Limits) => {
      const { account: id, name, plan, monthlyQuota, qrLimit, batchLimit } = options;
      if ((name ?? plan ?? monthlyQuota ?? qrLimit ?? batchLimit) === undefined) {
        throw new UsageError('Give at least one of --name, --plan, --monthly-quota, --qr-limit and --batch-limit.');
      }
      const { accounts } = await connectCore(process.env, id);
      const { overrides } = (await accounts.getAccount({})).account ?? {};
      const changed = await accounts.updateAccount({
        ...(name === undefined ? {} : { name }),
        ...(plan === undefined ? {} : { plan: PLAN_BY_NAME[plan] }),
        ...((monthlyQuota ?? qrLimit ?? batchLimit) === undefined
          ? {}
          : { overrides: overridden({ ...overrides }, options) }),
      });
      printRecord(json(), accountShown(changed.account));
    },
  );

  example(destructive(ofAccount(account.command('close'))), 'account close --account acct_… --delete-data')
    .description('close an account permanently: its key is revoked, its codes stop resolving, its domains are released')
    .option(
      '--delete-data',
      'also delete its data, including scans; ids, short codes, verified hostnames and the audit log stay',
      false,
    )
    .action(async ({ account: id, deleteData, yes }: { account: string; deleteData: boolean; yes: boolean }) => {
      const { accounts } = await connectCore(process.env, id);
      const { account: found } = await accounts.getAccount({});
      const data = deleteData ? ', and all its data will be deleted' : '';
      await expectConfirmed({ yes }, `${found?.name} (${id}) will be closed${data}, which can’t be undone.`);
      const closing = () => accounts.closeAccount({ deleteData });
      const closed = await withProgress({ json: json(), what: 'Closing the account' }, closing);
      printRecord(json(), accountShown(closed.account));
    });

  paged(ofAccount(account.command('audit')), 'entries', 100)
    .description('show the audit log of the account, newest first')
    .action(async ({ account: id, ...asked }: { account: string } & PageRange, command: Command) => {
      const { accounts } = await connectCore(process.env, id);
      const entries = await readPages(asked, { json: json(), what: 'entries', command }, async (page) => {
        const { entries: items, nextCursor } = await accounts.listAuditEntries(page);
        return { items, nextCursor };
      });
      print(
        json(),
        entries.map((entry) => ({ id: entry.id, ...entryShown(entry) })),
        () => table(entries.map(entryShown)),
      );
    });
}

function plan(): Option {
  return new Option('--plan <plan>', 'the plan of the account').choices(namesOf(PLAN_BY_NAME));
}

function limits(command: Command, read: (text: string) => number | 'plan'): Command {
  return command
    .option('--monthly-quota <requests>', 'requests per month, instead of the plan’s', read)
    .option('--qr-limit <codes>', 'dynamic codes that are not deleted, instead of the plan’s', read)
    .option('--batch-limit <rows>', 'rows per batch, instead of the plan’s', read);
}

function numberOrPlan(text: string): number | 'plan' {
  if (text === 'plan') return 'plan';
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number, or `plan`.');
  return Number(text);
}

interface Overrides {
  monthlyQuota?: bigint | undefined;
  codeLimit?: bigint | undefined;
  batchLimit?: number | undefined;
}

/** The overrides with the given values set, and those given as `plan` removed. */
function overridden<Known extends Overrides>(known: Known, { monthlyQuota, qrLimit, batchLimit }: Limits): Known {
  const wanted = { ...known };
  if (typeof monthlyQuota === 'number') wanted.monthlyQuota = BigInt(monthlyQuota);
  if (typeof qrLimit === 'number') wanted.codeLimit = BigInt(qrLimit);
  if (typeof batchLimit === 'number') wanted.batchLimit = batchLimit;
  if (monthlyQuota === 'plan') delete wanted.monthlyQuota;
  if (qrLimit === 'plan') delete wanted.codeLimit;
  if (batchLimit === 'plan') delete wanted.batchLimit;
  return wanted;
}

function accountShown(account: Account | undefined): DisplayRecord {
  const { id, name, plan, createdAt, closedAt } = requiredField(account, 'account');
  return {
    id,
    name,
    plan: nameOf(PLAN_BY_NAME, plan),
    created_at: timeJson(createdAt),
    closed_at: closedAt ? timeJson(closedAt) : null,
  };
}

function usageShown({ monthlyQuota, requestsUsed, codeLimit, codesUsed, batchLimit }: Usage): DisplayRecord {
  return {
    requests_used: Number(requestsUsed),
    monthly_quota: monthlyQuota === undefined ? 'unlimited' : Number(monthlyQuota),
    codes_used: Number(codesUsed),
    qr_limit: codeLimit === undefined ? 'unlimited' : Number(codeLimit),
    batch_limit: batchLimit,
  };
}

function entryShown({ at, actor, action, subject }: AuditEntry): DisplayRecord {
  return { at: timeJson(at), actor, action, subject };
}

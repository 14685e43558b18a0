import type { Command } from 'commander';
import { codeJson } from '../common/contract/code-json.ts';
import { requiredField } from '../common/contract/required-field.ts';
import { codesTable, showCode, shownInFull } from './code-output.ts';
import { connectCore, UsageError } from './core.ts';
import { exitUnfulfilled } from './exit-codes.ts';
import { destructive, example, expectConfirmed, ofAccount, paged } from './options.ts';
import { jsonOption, onOneLine, print } from './output.ts';
import { type PageRange, readPages } from './pages.ts';

interface CreateOptions {
  readonly account: string;
  readonly targetUrl: string;
  readonly name?: string;
  readonly folder?: string;
  readonly tag?: string[];
  readonly campaignType?: string;
  readonly domain?: string;
}

interface UpdateOptions {
  readonly account: string;
  readonly id: string;
  readonly targetUrl?: string;
  /** False: removed, as for the folder and the tags. */
  readonly name?: string | false;
  readonly folder?: string | false;
  readonly tag?: string[] | false;
}

interface ListOptions extends PageRange {
  readonly account: string;
  readonly folder?: string;
  readonly tag?: string[];
}

interface OneCode {
  readonly account: string;
  readonly id: string;
}

/** `code create`, `update`, `list`, `show`, `pause`, `resume`, `delete` and `restore`. */
export function dynamicCodeCommands(code: Command): void {
  const json = jsonOption(code);
  const one = (name: string) => ofAccount(code.command(name)).requiredOption('--id <id>', 'qr_…');

  const create = ofAccount(code.command('create'))
    .description('create a dynamic code, whose target can be changed at any time')
    .requiredOption('--target-url <url>', 'the target of scans: an absolute http or https URL')
    .option('--name <name>', 'a name of your own')
    .option('--folder <folder>', 'its folder, by name or id; a new name creates a folder')
    .option('--tag <tags...>', 'its tags, by name or id; new names create tags')
    .option('--campaign-type <type>', 'your own term for the kind of campaign')
    .option('--domain <id>', 'domain_…: a verified custom domain to print it on');
  example(create, 'code create --account acct_… --target-url https://example.com/menu --tag summer terrace').action(
    async ({ account, tag: tags = [], domain: domainId, ...fields }: CreateOptions) => {
      const { codes } = await connectCore(process.env, account);
      const created = await codes.createCode({ ...fields, tags, ...(domainId === undefined ? {} : { domainId }) });
      showCode(create, json(), created);
      // The code exists, but without a label that was asked for.
      if (created.warnings.length > 0) exitUnfulfilled();
    },
  );

  const update = one('update')
    .description('change a code; options not given stay unchanged, and the print stays valid')
    .option('--target-url <url>', 'the new target: an absolute http or https URL')
    .option('--name <name>', 'the new name')
    .option('--no-name', 'remove its name')
    .option('--folder <folder>', 'its folder, by name or id; a new name creates a folder')
    .option('--no-folder', 'take it out of its folder')
    .option('--tag <tags...>', 'all its tags, by name or id; new names create tags')
    .option('--no-tag', 'remove its tags');
  example(update, 'code update --account acct_… --id qr_… --target-url https://example.com/winter').action(
    async ({ account, id, targetUrl, name, folder, tag }: UpdateOptions) => {
      const changes = {
        ...(targetUrl === undefined ? {} : { target_url: targetUrl }),
        ...(name === undefined ? {} : { name: name === false ? undefined : name }),
        ...(folder === undefined ? {} : { folder: folder === false ? undefined : folder }),
        ...(tag === undefined ? {} : { tags: tag === false ? [] : tag }),
      };
      const paths = Object.keys(changes);
      if (paths.length === 0) throw new UsageError('Give at least one of --target-url, --name, --folder and --tag.');
      const { codes } = await connectCore(process.env, account);
      const { target_url, ...others } = changes;
      showCode(
        update,
        json(),
        await codes.updateCode({
          id,
          updateMask: { paths },
          ...(target_url === undefined ? {} : { targetUrl: target_url }),
          ...(Object.fromEntries(Object.entries(others).filter(([, value]) => value !== undefined)) as typeof others),
        }),
      );
    },
  );

  const list = paged(ofAccount(code.command('list')), 'codes', 25)
    .description('list the account’s codes, newest first')
    .option('--folder <folder>', 'only codes in this folder, by name or id; `none`: in no folder')
    .option('--tag <tags...>', 'only codes with any of these tags, by name or id');
  example(list, 'code list --account acct_… --folder Restaurant --limit 100').action(
    async ({ account, folder, tag: tags = [], ...range }: ListOptions) => {
      const { codes } = await connectCore(process.env, account);
      let total = 0;
      const listed = await readPages(range, { json: json(), what: 'codes' }, async (page) => {
        const read = await codes.listCodes({ ...page, tags, ...(folder === undefined ? {} : { folder }) });
        total ||= Number(read.total);
        return { items: read.codes, nextCursor: read.nextCursor, total: Number(read.total) };
      });
      const records = listed.map(codeJson);
      print(json(), records, () => codesTable(records, new Date()));
      const isRequestedPage = json() && list.getOptionValueSource('limit') === 'cli';
      if (!isRequestedPage && listed.length < total - (range.offset ?? 0)) {
        console.error(`${listed.length} of ${total.toLocaleString('en')} codes; --limit and --offset show others.`);
      }
    },
  );

  one('show')
    .description('show a code with its target, labels and number of scans')
    .action(async ({ account, id }: OneCode) => {
      const { codes } = await connectCore(process.env, account);
      const shown = codeJson(requiredField((await codes.getCode({ id })).code, 'code'));
      print(json(), shown, () => shownInFull(shown, new Date()));
    });

  for (const [name, paused, description] of [
    ['pause', true, 'pause a code: scans show a page that says so'],
    ['resume', false, 'resume a paused code'],
  ] as const) {
    const command = one(name).description(description);
    command.action(async ({ account, id }: OneCode) => {
      const { codes } = await connectCore(process.env, account);
      showCode(command, json(), await codes.updateCode({ id, updateMask: { paths: ['paused'] }, paused }));
    });
  }

  destructive(one('delete'))
    .description('delete a code: scans of its prints show a page that says so; `code restore` restores it')
    .action(async ({ account, id, yes }: OneCode & { yes: boolean }) => {
      const { codes } = await connectCore(process.env, account);
      const found = codeJson(requiredField((await codes.getCode({ id })).code, 'code'));
      const what = found.name === null ? id : `${onOneLine(found.name)} (${id})`;
      await expectConfirmed({ yes }, `${what} will be deleted, and its prints will no longer work.`);
      await codes.deleteCode({ id });
      print(json(), { ...found, deleted: true }, () => `${what} was deleted; code restore restores it.`);
    });

  const restore = example(one('restore'), 'code restore --account acct_… --id qr_…').description(
    'restore a deleted code; the plan’s limit is checked again',
  );
  restore.action(async ({ account, id }: OneCode) => {
    const { codes } = await connectCore(process.env, account);
    showCode(restore, json(), await codes.restoreCode({ id }));
  });
}

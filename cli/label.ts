import type { Command } from 'commander';
import { requiredField } from '../common/contract/required-field.ts';
import type { CoreClients } from './clients.ts';
import { connectCore } from './core.ts';
import { destructive, example, expectConfirmed, ofAccount } from './options.ts';
import { type DisplayRecord, jsonOption, printRecord, printRecords } from './output.ts';
import { type Page, readPages } from './pages.ts';

interface Label {
  readonly id: string;
  readonly name: string;
  readonly codeCount: bigint;
}

type Taxonomy = CoreClients['taxonomy'];

/** The operations that folders and tags have in common. */
interface Kind {
  readonly word: 'folder' | 'tag';
  /** What happens to the codes when one is deleted. */
  readonly after: string;
  list(on: Taxonomy, page: { limit: number; cursor?: string }): Promise<Page<Label>>;
  rename(on: Taxonomy, id: string, name: string): Promise<Label | undefined>;
  remove(on: Taxonomy, id: string): Promise<unknown>;
  merge(on: Taxonomy, id: string, into: string): Promise<Label | undefined>;
}

const FOLDER: Kind = {
  word: 'folder',
  after: 'its codes are then in no folder',
  list: async (on, page) => {
    const { folders: items, nextCursor } = await on.listFolders(page);
    return { items, nextCursor };
  },
  rename: async (on, id, name) => (await on.renameFolder({ id, name })).folder,
  remove: (on, id) => on.deleteFolder({ id }),
  merge: async (on, id, into) => (await on.mergeFolders({ id, into })).folder,
};

const TAG: Kind = {
  word: 'tag',
  after: 'its codes lose it',
  list: async (on, page) => {
    const { tags: items, nextCursor } = await on.listTags(page);
    return { items, nextCursor };
  },
  rename: async (on, id, name) => (await on.renameTag({ id, name })).tag,
  remove: (on, id) => on.deleteTag({ id }),
  merge: async (on, id, into) => (await on.mergeTags({ id, into })).tag,
};

/** `folder …`: lists, renames, merges and deletes folders; they are created by naming them on a code. */
export const folderCommands = (folder: Command): void => commandsOf(folder, FOLDER);

/** `tag …`: the same for tags. */
export const tagCommands = (tag: Command): void => commandsOf(tag, TAG);

function commandsOf(label: Command, { word, after, list, rename, remove, merge }: Kind): void {
  const json = jsonOption(label);
  const one = (name: string) => ofAccount(label.command(name)).requiredOption('--id <id>', `${word}_…`);

  ofAccount(label.command('list'))
    .description(`list the account’s ${word}s by name, with their numbers of codes`)
    .action(async ({ account }: { account: string }) => {
      const { taxonomy } = await connectCore(process.env, account);
      const all = await readPages({}, { json: json(), what: `${word}s` }, (page) => list(taxonomy, page));
      printRecords(json(), all.map(shown));
    });

  example(one('rename'), `${word} rename --account acct_… --id ${word}_… --name Hamburg`)
    .description(`rename a ${word}`)
    .requiredOption('--name <name>', '1–100 characters, unique')
    .action(async ({ account, id, name }: { account: string; id: string; name: string }) => {
      const { taxonomy } = await connectCore(process.env, account);
      printRecord(json(), shown(await rename(taxonomy, id, name)));
    });

  destructive(one('delete'))
    .description(`delete a ${word}; ${after}, and are otherwise unchanged`)
    .action(async ({ account, id, yes }: { account: string; id: string; yes: boolean }) => {
      await expectConfirmed({ yes }, `The ${word} ${id} will be deleted; ${after}.`);
      const { taxonomy } = await connectCore(process.env, account);
      await remove(taxonomy, id);
      printRecord(json(), { id, deleted: true });
    });

  example(destructive(one('merge')), `${word} merge --account acct_… --id ${word}_… --into ${word}_…`)
    .description(`move the codes of one ${word} to another, and delete the first`)
    .requiredOption('--into <id>', 'the one that remains')
    .action(async ({ account, id, into, yes }: { account: string; id: string; into: string; yes: boolean }) => {
      await expectConfirmed({ yes }, `The codes of ${id} will get ${into} instead, and ${id} will be deleted.`);
      const { taxonomy } = await connectCore(process.env, account);
      printRecord(json(), shown(await merge(taxonomy, id, into)));
    });
}

function shown(label: Label | undefined): DisplayRecord {
  const { id, name, codeCount } = requiredField(label, 'label');
  return { id, name, code_count: Number(codeCount) };
}

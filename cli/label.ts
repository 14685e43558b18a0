import type { Command } from 'commander';
import { type Core, connectCore, there } from './core.ts';
import { example, ofAccount } from './options.ts';
import { jsonWanted, printRecord, printRecords, type Shown } from './output.ts';
import { type Page, walk } from './pages.ts';

interface Label {
  readonly id: string;
  readonly name: string;
  readonly codeCount: bigint;
}

type Taxonomy = Core['taxonomy'];

/** What the core calls the same of folders and tags. */
interface Kind {
  readonly word: 'folder' | 'tag';
  /** What becomes of the codes when one is deleted. */
  readonly after: string;
  list(on: Taxonomy, page: { limit: number; cursor?: string }): Promise<Page<Label>>;
  rename(on: Taxonomy, id: string, name: string): Promise<Label | undefined>;
  remove(on: Taxonomy, id: string): Promise<unknown>;
  merge(on: Taxonomy, id: string, into: string): Promise<Label | undefined>;
}

const FOLDER: Kind = {
  word: 'folder',
  after: 'its codes are unfiled then',
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

/** `folder …` and `tag …`: renamed, merged, deleted; they come into being by being named on a code. */
export function labelCommands(program: Command): void {
  for (const kind of [FOLDER, TAG]) commandsOf(program, kind);
}

function commandsOf(program: Command, { word, after, list, rename, remove, merge }: Kind): void {
  const json = jsonWanted(program);
  const label = program.command(word).description(`${word}s of codes: rename, merge, delete`);
  const one = (name: string) => ofAccount(label.command(name)).requiredOption('--id <id>', `${word}_…`);

  ofAccount(label.command('list'))
    .description(`the account’s ${word}s by name, with their codes counted`)
    .action(async ({ account }: { account: string }) => {
      const { taxonomy } = await connectCore(process.env, account);
      const all = await walk({}, (page) => list(taxonomy, page));
      printRecords(json(), all.map(shown));
    });

  example(one('rename'), `${word} rename --account acct_… --id ${word}_… --name Hamburg`)
    .description(`give a ${word} another name`)
    .requiredOption('--name <name>', '1–100 characters that no other one has')
    .action(async ({ account, id, name }: { account: string; id: string; name: string }) => {
      const { taxonomy } = await connectCore(process.env, account);
      printRecord(json(), shown(await rename(taxonomy, id, name)));
    });

  one('delete')
    .description(`delete a ${word}; ${after}, and nothing else of them changes`)
    .action(async ({ account, id }: { account: string; id: string }) => {
      const { taxonomy } = await connectCore(process.env, account);
      await remove(taxonomy, id);
      printRecord(json(), { id, deleted: true });
    });

  example(one('merge'), `${word} merge --account acct_… --id ${word}_… --into ${word}_…`)
    .description(`give the codes of one ${word} another one, and delete the first`)
    .requiredOption('--into <id>', 'the one that stays')
    .action(async ({ account, id, into }: { account: string; id: string; into: string }) => {
      const { taxonomy } = await connectCore(process.env, account);
      printRecord(json(), shown(await merge(taxonomy, id, into)));
    });
}

function shown(label: Label | undefined): Shown {
  const { id, name, codeCount } = there(label);
  return { id, name, code_count: Number(codeCount) };
}

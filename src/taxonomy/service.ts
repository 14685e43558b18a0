import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import type { Pool, PoolClient } from 'pg';
import type { TaxonomyService } from '../../proto/gen/signpost/taxonomy/v1/taxonomy_pb.ts';
import { recordChange } from '../access/audit.ts';
import { accountOf } from '../access/caller.ts';
import { encodeId } from '../contract/ids.ts';
import { first, type Queryable, run, statement, transaction } from '../db/sql.ts';
import { FOLDER, type Kind, TAG } from './kinds.ts';
import { deleteLabel, mergeLabels } from './remove.ts';
import { renameLabel } from './rename.ts';

interface CountedLabel {
  id: string;
  name: string;
  code_count: string;
}

/** Indexes: folders_name for the account's folders, codes_in_folder for the counts (index only). */
const listFolders = statement<CountedLabel>(
  'taxonomy_list_folders',
  `select f.id, f.name, coalesce(counted.codes, 0) as code_count
   from folders f
   left join (select folder_id, count(*) as codes from codes
              where account_id = $1 and folder_id is not null and deleted_at is null group by folder_id) counted
     on counted.folder_id = f.id
   where f.account_id = $1
   order by f.name collate "und-x-icu"`,
);

const TAG_COLUMNS = `
  t.id, t.name, (select count(*) from code_tags ct join codes c on c.id = ct.code_id
                 where ct.tag_id = t.id and c.account_id = t.account_id and c.deleted_at is null) as code_count`;

/** Indexes: tags_name for the account's tags, code_tags_by_tag and codes_pkey for the counts. */
const listTags = statement<CountedLabel>(
  'taxonomy_list_tags',
  `select ${TAG_COLUMNS} from tags t where t.account_id = $1 order by t.name collate "und-x-icu"`,
);

/** Indexes: folders_pkey, codes_in_folder. */
const oneFolder = statement<CountedLabel>(
  'taxonomy_one_folder',
  `select f.id, f.name, (select count(*) from codes c
                         where c.account_id = $1 and c.folder_id = f.id and c.deleted_at is null) as code_count
   from folders f where f.account_id = $1 and f.id = $2`,
);

/** Indexes: tags_pkey, code_tags_by_tag, codes_pkey. */
const oneTag = statement<CountedLabel>(
  'taxonomy_one_tag',
  `select ${TAG_COLUMNS} from tags t where t.account_id = $1 and t.id = $2`,
);

/** Folders and tags of an account. */
export function taxonomyService(pool: Pool): ServiceImpl<typeof TaxonomyService> {
  /** A change of one label, on record; `work` gives the UUID of the label that the answer shows. */
  const change = (
    context: HandlerContext,
    kind: Kind,
    subject: string,
    work: (tx: PoolClient, accountId: string) => Promise<string>,
  ) =>
    transaction(pool, async (tx) => {
      const { id: accountId } = accountOf(context);
      const shown = await work(tx, accountId);
      await recordChange(tx, context, subject);
      return read(tx, kind, accountId, shown);
    });
  const remove = (context: HandlerContext, kind: Kind, id: string) =>
    transaction(pool, async (tx) => {
      await deleteLabel(tx, kind, accountOf(context).id, id);
      await recordChange(tx, context, id);
      return {};
    });

  return {
    async listFolders(_, context) {
      const rows = await run(pool, listFolders, [accountOf(context).id]);
      return { folders: rows.map((row) => counted(FOLDER, row)) };
    },
    async listTags(_, context) {
      const rows = await run(pool, listTags, [accountOf(context).id]);
      return { tags: rows.map((row) => counted(TAG, row)) };
    },
    async renameFolder(request, context) {
      return { folder: await change(context, FOLDER, request.id, (tx, id) => renameLabel(tx, FOLDER, id, request)) };
    },
    async renameTag(request, context) {
      return { tag: await change(context, TAG, request.id, (tx, id) => renameLabel(tx, TAG, id, request)) };
    },
    deleteFolder: ({ id }, context) => remove(context, FOLDER, id),
    deleteTag: ({ id }, context) => remove(context, TAG, id),
    async mergeFolders(request, context) {
      return { folder: await change(context, FOLDER, request.id, (tx, id) => mergeLabels(tx, FOLDER, id, request)) };
    },
    async mergeTags(request, context) {
      return { tag: await change(context, TAG, request.id, (tx, id) => mergeLabels(tx, TAG, id, request)) };
    },
  };
}

async function read(tx: Queryable, kind: Kind, accountId: string, id: string) {
  const row = await first(tx, kind === FOLDER ? oneFolder : oneTag, [accountId, id]);
  if (!row) throw new Error(`a locked ${kind.name} is gone`);
  return counted(kind, row);
}

function counted({ name: prefix }: Kind, { id, name, code_count }: CountedLabel) {
  return { id: encodeId(prefix, id), name, codeCount: BigInt(code_count) };
}

import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import type { EntityManager } from '@mikro-orm/postgresql';
import { encodeId } from '../../common/contract/ids.ts';
import { LIMITS } from '../../common/contract/limits.ts';
import { first, type Queryable, run, type Statement, statement } from '../../common/postgres/sql.ts';
import type {
  ListFoldersRequest,
  ListTagsRequest,
  TaxonomyService,
} from '../../proto/gen/signpost/taxonomy/v1/taxonomy_pb.ts';
import { recordChange } from '../access/audit.ts';
import { ormTransactionOf } from '../access/call-transaction.ts';
import { accountOf } from '../access/caller.ts';
import { type Cursors, positionAfter } from '../calls/cursors.ts';
import { endPage, pageOf } from '../calls/paging.ts';
import type { Database } from '../db/database.ts';
import { joinUndeletedCode, LOOKED_UP } from '../db/look-up-code.ts';
import { deleteLabel, mergeLabels } from './delete-and-merge.ts';
import { FOLDER, type LabelKind, TAG } from './label-kinds.ts';
import type { LabelledCodes } from './labelled-codes.ts';
import { type ChangedLabel, renameLabel } from './rename.ts';

interface CountedLabel {
  id: string;
  name: string;
  code_count: string;
}

/** Indexes: code_tags_by_tag, codes_pkey. */
const TAG_COLUMNS = `
  l.id, l.name, (select count(c.id) from code_tags ct ${joinUndeletedCode('id', 'ct.code_id', 'l.account_id')}
                 where ct.tag_id = l.id) as code_count`;

/**
 * One label more than the page has, so that the caller knows whether another page follows. Indexes: folders_name;
 * tags_name.
 */
const page = (labels: 'folders' | 'tags') => `
  select id, name, account_id from ${labels}
  where account_id = $1 and ($2::text is null or name collate "und-x-icu" > $2)
  order by name collate "und-x-icu" limit $3 + 1`;

/**
 * Sorting and limiting come first: only the codes of the page's folders are counted, all in one scan. A scan for each
 * folder took minutes by a plan from when there were few codes. Of a full join Postgres does not compare each folder
 * with each. Index: codes_in_folder.
 */
const pageOfFolders = statement<CountedLabel>(
  'taxonomy_list_folders',
  `with page as materialized (${page('folders')}), counted as (
     select folder_id, count(*) from codes
     where account_id = $1 and folder_id = any(array(select id from page)) and deleted_at is null
     group by folder_id
   )
   select l.id, l.name, coalesce(c.count, 0) as code_count
   from page l full join counted c on c.folder_id = l.id
   order by l.name collate "und-x-icu"`,
);

const pageOfTags = statement<CountedLabel>(
  'taxonomy_list_tags',
  `select ${TAG_COLUMNS} from (${page('tags')}) l order by l.name collate "und-x-icu"`,
);

/** Whether the tags of a page have more than `LOOKED_UP` codes. Index: code_tags_by_tag. */
const isLargePageOfTags = statement<{ is_large: boolean }>(
  'taxonomy_large_page_of_tags',
  `select count(*) > ${LOOKED_UP} as is_large from (
     select from (${page('tags')}) l cross join lateral (select from code_tags where tag_id = l.id offset 0) ct
     limit ${LOOKED_UP + 1}
   ) counted`,
);

/**
 * Reads all codes of the account. A full join never compares each tag of a code with each code, whatever the statistics
 * are, and takes a tenth of the time of a look-up. `having` with an aggregate leaves it one. Indexes: code_tags_by_tag,
 * codes_listed.
 */
const largePageOfTags = statement<CountedLabel>(
  'taxonomy_list_large_tags',
  `select l.id, l.name, count(c.id) as code_count
   from (
     select t.id, t.name, ct.code_id
     from (${page('tags')}) t
       left join lateral (select code_id from code_tags where tag_id = t.id offset 0) ct on true
   ) l full join (select id from codes where account_id = $1 and deleted_at is null) c on c.id = l.code_id
   group by l.id, l.name having count(l.id) > 0
   order by l.name collate "und-x-icu"`,
);

/** The faster statement for a page of tags. */
async function tagStatement(pool: Queryable, values: readonly unknown[]): Promise<Statement<CountedLabel>> {
  return (await first(pool, isLargePageOfTags, values))?.is_large ? largePageOfTags : pageOfTags;
}

/** Indexes: folders_pkey, codes_in_folder (index only). */
const folderById = statement<CountedLabel>(
  'taxonomy_one_folder',
  `select l.id, l.name, (select count(*) from codes c
                         where c.account_id = l.account_id and c.folder_id = l.id and c.deleted_at is null) as code_count
   from folders l where l.account_id = $1 and l.id = $2`,
);

/** Index: tags_pkey. */
const tagById = statement<CountedLabel>(
  'taxonomy_one_tag',
  `select ${TAG_COLUMNS} from tags l where l.account_id = $1 and l.id = $2`,
);

/** Folders and tags of an account. `cursors`: for lists sorted by name. */
export function taxonomyService({
  database: { orm, pool },
  cursors,
  codes,
}: {
  readonly database: Database;
  readonly cursors: Cursors;
  readonly codes: LabelledCodes;
}): ServiceImpl<typeof TaxonomyService> {
  async function list(context: HandlerContext, kind: LabelKind, request: ListFoldersRequest | ListTagsRequest) {
    const { id: accountId } = accountOf(context);
    const { limit } = pageOf(request, { least: 1, most: LIMITS[kind.plural], fallback: LIMITS[kind.plural] });
    const listName = `${kind.plural} ${accountId}`;
    const after = positionAfter(cursors, listName, request.cursor);
    const values = [accountId, after, limit];
    const rows = await run(pool, kind === FOLDER ? pageOfFolders : await tagStatement(pool, values), values);
    const { items, next } = endPage(rows, limit, [cursors, listName], ({ name }) => name);
    return { labels: items.map((row) => messageOf(kind, row)), next };
  }
  /** Changes a label and records the change in the audit log; `work` returns the label to respond with. */
  const change = (
    context: HandlerContext,
    kind: LabelKind,
    subject: string,
    work: (em: EntityManager, accountId: string) => Promise<ChangedLabel>,
  ) =>
    ormTransactionOf(context, orm, async (em, tx) => {
      const { id: accountId } = accountOf(context);
      const label = await work(em, accountId);
      if (label.changed) await recordChange(tx, context, subject);
      return readLabel(tx, kind, accountId, label.id);
    });
  const remove = (context: HandlerContext, kind: LabelKind, id: string) =>
    ormTransactionOf(context, orm, async (em, tx) => {
      await deleteLabel(em, kind, accountOf(context).id, { id, codes });
      await recordChange(tx, context, id);
      return {};
    });

  return {
    async listFolders(request, context) {
      const { labels, next } = await list(context, FOLDER, request);
      return { folders: labels, ...next };
    },
    async listTags(request, context) {
      const { labels, next } = await list(context, TAG, request);
      return { tags: labels, ...next };
    },
    async renameFolder(request, context) {
      const rename = { ...request, codes };
      return { folder: await change(context, FOLDER, request.id, (em, id) => renameLabel(em, FOLDER, id, rename)) };
    },
    async renameTag(request, context) {
      const rename = { ...request, codes };
      return { tag: await change(context, TAG, request.id, (em, id) => renameLabel(em, TAG, id, rename)) };
    },
    deleteFolder: ({ id }, context) => remove(context, FOLDER, id),
    deleteTag: ({ id }, context) => remove(context, TAG, id),
    async mergeFolders(request, context) {
      const merge = { ...request, codes };
      return { folder: await change(context, FOLDER, request.id, (em, id) => mergeLabels(em, FOLDER, id, merge)) };
    },
    async mergeTags(request, context) {
      const merge = { ...request, codes };
      return { tag: await change(context, TAG, request.id, (em, id) => mergeLabels(em, TAG, id, merge)) };
    },
  };
}

async function readLabel(tx: Queryable, kind: LabelKind, accountId: string, id: string) {
  const row = await first(tx, kind === FOLDER ? folderById : tagById, [accountId, id]);
  if (!row) throw new Error(`a locked ${kind.name} does not exist`);
  return messageOf(kind, row);
}

function messageOf({ name: prefix }: LabelKind, { id, name, code_count }: CountedLabel) {
  return { id: encodeId(prefix, id), name, codeCount: BigInt(code_count) };
}

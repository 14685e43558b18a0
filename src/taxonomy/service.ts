import type { ServiceImpl } from '@connectrpc/connect';
import type { Pool } from 'pg';
import type { TaxonomyService } from '../../proto/gen/signpost/taxonomy/v1/taxonomy_pb.ts';
import { accountOf } from '../access/caller.ts';
import { encodeId } from '../contract/ids.ts';
import { run, statement } from '../db/sql.ts';

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

/** Indexes: tags_name for the account's tags, code_tags_by_tag and codes_pkey for the counts. */
const listTags = statement<CountedLabel>(
  'taxonomy_list_tags',
  `select t.id, t.name,
          (select count(*) from code_tags ct join codes c on c.id = ct.code_id
           where ct.tag_id = t.id and c.deleted_at is null) as code_count
   from tags t
   where t.account_id = $1
   order by t.name collate "und-x-icu"`,
);

/** Folders and tags of an account. */
export function taxonomyService(pool: Pool): Pick<ServiceImpl<typeof TaxonomyService>, 'listFolders' | 'listTags'> {
  return {
    async listFolders(_, context) {
      const rows = await run(pool, listFolders, [accountOf(context).id]);
      return { folders: rows.map((row) => counted('folder', row)) };
    },
    async listTags(_, context) {
      const rows = await run(pool, listTags, [accountOf(context).id]);
      return { tags: rows.map((row) => counted('tag', row)) };
    },
  };
}

function counted(prefix: 'folder' | 'tag', { id, name, code_count }: CountedLabel) {
  return { id: encodeId(prefix, id), name, codeCount: BigInt(code_count) };
}

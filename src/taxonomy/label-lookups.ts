import type { Pool } from 'pg';
import { first, statement } from '../../common/postgres/sql.ts';
import { joinUndeletedCode } from '../db/look-up-code.ts';
import type { LabelKind } from './label-kinds.ts';

/** Indexes: folders_pkey, tags_pkey. */
const BY_ID = {
  folder: statement('taxonomy_folder_exists', 'select from folders where id = $1 and account_id = $2'),
  tag: statement('taxonomy_tag_exists', 'select from tags where id = $1 and account_id = $2'),
};

/** Whether the account has this folder or tag. `accountId`, `id`: UUIDs. */
export async function labelExists(
  pool: Pool,
  kind: LabelKind['name'],
  accountId: string,
  id: string,
): Promise<boolean> {
  return (await first(pool, BY_ID[kind], [id, accountId])) !== undefined;
}

/**
 * A query for the ids of the codes of account $1 with tag $2, null for deleted ones: they keep their tags, as they may
 * be restored. Indexes: tags_pkey, code_tags_by_tag.
 */
export const CODES_WITH_TAG = `
  select c.id
  from tags t join code_tags ct on ct.tag_id = t.id ${joinUndeletedCode('id', 'ct.code_id', '$1')}
  where t.id = $2 and t.account_id = $1`;

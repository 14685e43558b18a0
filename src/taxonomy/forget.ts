import type { Pool } from 'pg';
import { run, statement, transaction } from '../../common/postgres/sql.ts';

/** Indexes: tags_name for the account's tags, code_tags_by_tag. */
const unlabelAll = statement(
  'taxonomy_forget_code_tags',
  'delete from code_tags where tag_id in (select id from tags where account_id = $1)',
);

/** Indexes: tags_name, folders_name. */
const forgetTags = statement('taxonomy_forget_tags', 'delete from tags where account_id = $1');
const forgetFolders = statement('taxonomy_forget_folders', 'delete from folders where account_id = $1');

/** Forgets all folders and tags of an account whose codes are filed nowhere any more. `accountId`: UUID. */
export function forgetLabels(pool: Pool, accountId: string): Promise<void> {
  return transaction(pool, async (tx) => {
    for (const forget of [unlabelAll, forgetTags, forgetFolders]) await run(tx, forget, [accountId]);
  });
}

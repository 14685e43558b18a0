import type { Pool } from 'pg';
import { run, statement, transaction } from '../../common/postgres/sql.ts';

/** Indexes: tags_name for the account's tags, code_tags_by_tag. */
const deleteCodeTags = statement(
  'taxonomy_delete_code_tags',
  'delete from code_tags where tag_id in (select id from tags where account_id = $1)',
);

/** Indexes: tags_name, folders_name. */
const deleteTags = statement('taxonomy_delete_tags', 'delete from tags where account_id = $1');
const deleteFolders = statement('taxonomy_delete_folders', 'delete from folders where account_id = $1');

/**
 * Deletes all folders and tags of an account; the foreign key requires that no code is in a folder any more.
 * `accountId`: UUID.
 */
export function deleteAccountLabels(pool: Pool, accountId: string): Promise<void> {
  return transaction(pool, async (tx) => {
    for (const remove of [deleteCodeTags, deleteTags, deleteFolders]) await run(tx, remove, [accountId]);
  });
}

import { failure } from '../contract/errors.ts';
import { decodeId } from '../contract/ids.ts';
import { type Queryable, run, type Statement, statement } from '../db/sql.ts';
import { folderName, type Name, tagName } from './names.ts';

/** The two kinds of labels: alike in everything but how codes carry them. */
export interface Kind {
  /** Prefix of ids, and the word for people. */
  readonly name: 'folder' | 'tag';
  readonly nameOf: (input: string, field: string) => Name;
  /** In the order of ids, for all transactions, so that two of them never wait for each other in a circle. */
  readonly lock: Statement<{ id: string }>;
  readonly rename: Statement<Record<string, never>>;
  readonly remove: Statement<Record<string, never>>;
}

/** Index, for each of the statements: folders_pkey, tags_pkey. */
function kind(name: Kind['name'], nameOf: Kind['nameOf']): Kind {
  const where = 'where account_id = $1 and id = any($2::uuid[])';
  return {
    name,
    nameOf,
    lock: statement(`taxonomy_lock_${name}s`, `select id from ${name}s ${where} order by id for update`),
    rename: statement(`taxonomy_rename_${name}`, `update ${name}s set name = $3 ${where}`),
    remove: statement(`taxonomy_remove_${name}`, `delete from ${name}s ${where}`),
  };
}

export const FOLDER = kind('folder', folderName);
export const TAG = kind('tag', tagName);

/**
 * Locks labels of the account by their ids, so that no code can be given one of them until the transaction ends; gives
 * their UUIDs. Fails with NOT_FOUND. `accountId`: UUID.
 */
export async function lockLabels(
  tx: Queryable,
  { name, lock }: Kind,
  accountId: string,
  ids: readonly string[],
): Promise<string[]> {
  const uuids = ids.flatMap((id) => decodeId(name, id) ?? []);
  const found = await run(tx, lock, [accountId, uuids]);
  if (found.length !== ids.length) throw failure('NOT_FOUND', `There is no such ${name} on this account.`);
  return uuids;
}

import type { EntityManager } from '@mikro-orm/postgresql';
import { failure } from '../../common/contract/errors.ts';
import { type Queryable, run, statement } from '../../common/postgres/sql.ts';
import { connectionOf } from '../db/orm-transaction.ts';
import { FOLDER, type Kind, lockLabels } from './kinds.ts';

/** Index: code_tags_by_tag. */
const unlabel = statement('taxonomy_unlabel', 'delete from code_tags where tag_id = $1');

/** A code that has both keeps one. Indexes: code_tags_by_tag, code_tags_pkey. */
const dropDoubles = statement(
  'taxonomy_drop_doubles',
  `delete from code_tags gone
   where gone.tag_id = $1 and exists (select from code_tags kept where kept.code_id = gone.code_id and kept.tag_id = $2)`,
);

/**
 * Changes rows instead of inserting others: a code that loses the tag meanwhile is not given the new one. Index:
 * code_tags_by_tag.
 */
const relabel = statement('taxonomy_merge_tags', 'update code_tags set tag_id = $2 where tag_id = $1');

/**
 * Moves all codes of a folder to another one, or to none. Codes depend on labels and not the reverse, so the function is
 * passed in. Ids are UUIDs.
 */
export type MoveCodes = (tx: Queryable, accountId: string, from: string, to: string | null) => Promise<void>;

/** Deletes a label and removes it from its codes, which are otherwise unchanged. Fails with NOT_FOUND. */
export async function deleteLabel(
  em: EntityManager,
  kind: Kind,
  accountId: string,
  { id, moveCodes }: { readonly id: string; readonly moveCodes: MoveCodes },
): Promise<void> {
  const [label] = await lockLabels(em, kind, accountId, [id]);
  const tx = connectionOf(em);
  if (kind === FOLDER) await moveCodes(tx, accountId, label.id, null);
  else await run(tx, unlabel, [label.id]);
  await em.remove(label).flush();
}

/** Gives the codes of one label another one, and deletes the first; gives the UUID of the other. As `deleteLabel`. */
export async function mergeLabels(
  em: EntityManager,
  kind: Kind,
  accountId: string,
  { id, into, moveCodes }: { readonly id: string; readonly into: string; readonly moveCodes: MoveCodes },
): Promise<string> {
  if (id === into) throw failure('INVALID_FIELD', `into: must be another ${kind.name}.`);
  const [from, to] = await lockLabels(em, kind, accountId, [id, into]);
  const tx = connectionOf(em);
  if (kind === FOLDER) await moveCodes(tx, accountId, from.id, to.id);
  else {
    await run(tx, dropDoubles, [from.id, to.id]);
    await run(tx, relabel, [from.id, to.id]);
  }
  await em.remove(from).flush();
  return to.id;
}

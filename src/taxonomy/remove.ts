import type { EntityManager } from '@mikro-orm/postgresql';
import { failure } from '../../common/contract/errors.ts';
import { run, statement } from '../../common/postgres/sql.ts';
import { connectionOf } from '../db/orm-transaction.ts';
import { FOLDER, type Kind, lockLabels } from './kinds.ts';
import type { LabelledCodes } from './labelled-codes.ts';

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

/** Deletes a label and removes it from its codes. Fails with NOT_FOUND. */
export async function deleteLabel(
  em: EntityManager,
  kind: Kind,
  accountId: string,
  { id, codes }: { readonly id: string; readonly codes: LabelledCodes },
): Promise<void> {
  const [label] = await lockLabels(em, kind, accountId, [id]);
  const tx = connectionOf(em);
  if (kind === FOLDER) await codes.moveToFolder(tx, accountId, label.id, null);
  else {
    await codes.changed(tx, accountId, kind.name, label.id);
    await run(tx, unlabel, [label.id]);
  }
  await em.remove(label).flush();
}

/** Replaces a label by another one on its codes, and deletes it; returns the UUID of the other. Fails as `deleteLabel` does. */
export async function mergeLabels(
  em: EntityManager,
  kind: Kind,
  accountId: string,
  { id, into, codes }: { readonly id: string; readonly into: string; readonly codes: LabelledCodes },
): Promise<string> {
  if (id === into) throw failure('INVALID_FIELD', `into: must be another ${kind.name}.`);
  const [from, to] = await lockLabels(em, kind, accountId, [id, into]);
  const tx = connectionOf(em);
  if (kind === FOLDER) await codes.moveToFolder(tx, accountId, from.id, to.id);
  else {
    await codes.changed(tx, accountId, kind.name, from.id);
    await run(tx, dropDoubles, [from.id, to.id]);
    await run(tx, relabel, [from.id, to.id]);
  }
  await em.remove(from).flush();
  return to.id;
}

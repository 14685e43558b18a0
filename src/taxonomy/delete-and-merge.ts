import type { EntityManager } from '@mikro-orm/postgresql';
import { failure } from '../../common/contract/errors.ts';
import { run, statement } from '../../common/postgres/sql.ts';
import { connectionOf } from '../db/orm-transaction.ts';
import { FOLDER, type LabelKind, lockLabels } from './label-kinds.ts';
import type { LabelledCodes } from './labelled-codes.ts';
import type { ChangedLabel } from './rename.ts';

/** Index: code_tags_by_tag. */
const deleteAssignments = statement('taxonomy_delete_assignments', 'delete from code_tags where tag_id = $1');

/**
 * Removes the first tag from codes that have both. `offset 0` makes Postgres look up each code's other tag, whatever
 * the statistics are. Indexes: code_tags_by_tag, code_tags_pkey.
 */
const deleteDuplicates = statement(
  'taxonomy_delete_duplicates',
  `delete from code_tags gone
   where gone.tag_id = $1
     and exists (select from code_tags kept where kept.code_id = gone.code_id and kept.tag_id = $2 offset 0)`,
);

/**
 * Updates rows instead of inserting new ones, so that a code from which the tag is removed concurrently does not get
 * the other tag. Index: code_tags_by_tag.
 */
const replaceTag = statement('taxonomy_merge_tags', 'update code_tags set tag_id = $2 where tag_id = $1');

/** Deletes a label and removes it from its codes. `accountId`: UUID; `id`: with prefix. Fails with NOT_FOUND. */
export async function deleteLabel(
  em: EntityManager,
  kind: LabelKind,
  accountId: string,
  { id, codes }: { readonly id: string; readonly codes: LabelledCodes },
): Promise<void> {
  const [label] = await lockLabels(em, kind, accountId, [id]);
  const tx = connectionOf(em);
  if (kind === FOLDER) await codes.moveToFolder(tx, accountId, label.id, null);
  else {
    await codes.changed(tx, accountId, kind.name, label.id);
    await run(tx, deleteAssignments, [label.id]);
  }
  await em.remove(label).flush();
}

/**
 * Replaces a label with another one on its codes and deletes it; returns the other. Fails with NOT_FOUND, or with
 * INVALID_FIELD when both are the same.
 */
export async function mergeLabels(
  em: EntityManager,
  kind: LabelKind,
  accountId: string,
  { id, into, codes }: { readonly id: string; readonly into: string; readonly codes: LabelledCodes },
): Promise<ChangedLabel> {
  if (id === into) throw failure('INVALID_FIELD', `into: must be another ${kind.name}.`);
  const [from, to] = await lockLabels(em, kind, accountId, [id, into]);
  const tx = connectionOf(em);
  if (kind === FOLDER) await codes.moveToFolder(tx, accountId, from.id, to.id);
  else {
    await codes.changed(tx, accountId, kind.name, from.id);
    await run(tx, deleteDuplicates, [from.id, to.id]);
    await run(tx, replaceTag, [from.id, to.id]);
  }
  await em.remove(from).flush();
  return { id: to.id, changed: true };
}

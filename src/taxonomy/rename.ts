import { UniqueConstraintViolationException } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { failure } from '../../common/contract/errors.ts';
import { connectionOf } from '../db/orm-transaction.ts';
import { type Kind, lockLabels } from './kinds.ts';
import type { LabelledCodes } from './labelled-codes.ts';

/** Renames a label; returns its UUID. Fails with INVALID_FIELD, NOT_FOUND or ALREADY_EXISTS. */
export async function renameLabel(
  em: EntityManager,
  kind: Kind,
  accountId: string,
  { id, name, codes }: { readonly id: string; readonly name: string; readonly codes: LabelledCodes },
): Promise<string> {
  const checked = kind.nameOf(name, 'name');
  if ('problem' in checked) throw failure('INVALID_FIELD', checked.problem);
  const [label] = await lockLabels(em, kind, accountId, [id]);
  if (label.name === checked.name) return label.id;
  label.name = checked.name;
  await em.flush().catch((error: unknown) => {
    if (!(error instanceof UniqueConstraintViolationException)) throw error;
    throw failure('ALREADY_EXISTS', `Another ${kind.name} has this name; merge the two instead.`);
  });
  await codes.changed(connectionOf(em), accountId, kind.name, label.id);
  return label.id;
}

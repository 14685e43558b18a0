import { UniqueConstraintViolationException } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { failure } from '../../common/contract/errors.ts';
import { connectionOf } from '../db/orm-transaction.ts';
import { type LabelKind, lockLabels } from './label-kinds.ts';
import type { LabelledCodes } from './labelled-codes.ts';

/** A label by its UUID, and whether a call has changed it. */
export interface ChangedLabel {
  readonly id: string;
  readonly changed: boolean;
}

/** Renames a label. Fails with INVALID_FIELD, NOT_FOUND or ALREADY_EXISTS. */
export async function renameLabel(
  em: EntityManager,
  kind: LabelKind,
  accountId: string,
  { id, name, codes }: { readonly id: string; readonly name: string; readonly codes: LabelledCodes },
): Promise<ChangedLabel> {
  const parsed = kind.parseName(name, 'name');
  if ('problem' in parsed) throw failure('INVALID_FIELD', parsed.problem);
  const [label] = await lockLabels(em, kind, accountId, [id]);
  if (label.name === parsed.name) return { id: label.id, changed: false };
  label.name = parsed.name;
  await em.flush().catch((error: unknown) => {
    if (!(error instanceof UniqueConstraintViolationException)) throw error;
    throw failure('ALREADY_EXISTS', `Another ${kind.name} has this name; merge the two instead.`);
  });
  await codes.changed(connectionOf(em), accountId, kind.name, label.id);
  return { id: label.id, changed: true };
}

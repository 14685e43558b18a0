import { UniqueConstraintViolationException } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { failure } from '../../common/contract/errors.ts';
import { type Kind, lockLabels } from './kinds.ts';

/** Gives a label another name; gives its UUID. Fails with INVALID_FIELD, NOT_FOUND or ALREADY_EXISTS. */
export async function renameLabel(
  em: EntityManager,
  kind: Kind,
  accountId: string,
  { id, name }: { readonly id: string; readonly name: string },
): Promise<string> {
  const checked = kind.nameOf(name, 'name');
  if ('problem' in checked) throw failure('INVALID_FIELD', checked.problem);
  const [label] = await lockLabels(em, kind, accountId, [id]);
  label.name = checked.name;
  await em.flush().catch((error: unknown) => {
    if (!(error instanceof UniqueConstraintViolationException)) throw error;
    throw failure('ALREADY_EXISTS', `Another ${kind.name} has this name; merge the two instead.`);
  });
  return label.id;
}

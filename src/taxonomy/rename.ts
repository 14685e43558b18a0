import { DatabaseError } from 'pg';
import { failure } from '../../common/contract/errors.ts';
import { type Queryable, run } from '../../common/postgres/sql.ts';
import { type Kind, lockLabels } from './kinds.ts';

/** SQLSTATE of a name that another label has. */
const TAKEN = '23505';

/** Gives a label another name. Fails with INVALID_FIELD, NOT_FOUND or ALREADY_EXISTS. */
export async function renameLabel(
  tx: Queryable,
  kind: Kind,
  accountId: string,
  { id, name }: { readonly id: string; readonly name: string },
): Promise<string> {
  const checked = kind.nameOf(name, 'name');
  if ('problem' in checked) throw failure('INVALID_FIELD', checked.problem);
  const [uuid = ''] = await lockLabels(tx, kind, accountId, [id]);
  await run(tx, kind.rename, [accountId, [uuid], checked.name]).catch((error: unknown) => {
    if (!(error instanceof DatabaseError) || error.code !== TAKEN) throw error;
    throw failure('ALREADY_EXISTS', `Another ${kind.name} has this name; merge the two instead.`);
  });
  return uuid;
}

import { type Queryable, run, statement } from '../../common/postgres/sql.ts';

/** Includes deleted codes, which may be restored. Index: codes_filed. */
const moveToFolder = statement(
  'codes_move_to_folder',
  'update codes set folder_id = $3 where folder_id = $2 and account_id = $1',
);

/**
 * Moves all codes of a folder to another one, or to none. This does not count as a change of the codes: their targets,
 * versions and times stay. Ids are UUIDs; the caller holds locks on the folders.
 */
export async function moveCodesToFolder(
  tx: Queryable,
  accountId: string,
  from: string,
  to: string | null,
): Promise<void> {
  await run(tx, moveToFolder, [accountId, from, to]);
}

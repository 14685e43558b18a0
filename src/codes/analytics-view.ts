import type { Pool } from 'pg';
import { first, run, statement } from '../../common/postgres/sql.ts';
import type { Codes } from '../analytics/codes.ts';
import { codesWithTag, folderExists } from '../taxonomy/members.ts';

/** Index: codes_pkey. */
const exists = statement('codes_exists', 'select from codes where id = $1 and account_id = $2 and deleted_at is null');

/** Index: codes_in_folder. */
const inFolder = statement<{ id: string }>(
  'codes_in_folder_ids',
  'select id from codes where account_id = $1 and folder_id = $2 and deleted_at is null',
);

/** Index: codes_pkey. */
const labels = statement<{ id: string; short_code: string; name: string | null }>(
  'codes_labels',
  'select id, short_code, name from codes where account_id = $1 and id = any($2::uuid[])',
);

/** What analytics asks of codes. `codesOfBatch`: the same as `of`, from the room above that keeps batches. */
export function codesForAnalytics(
  pool: Pool,
  codesOfBatch: (accountId: string, batchId: string) => Promise<readonly string[] | undefined>,
): Codes {
  return {
    async exists(accountId, codeId) {
      return (await first(pool, exists, [codeId, accountId])) !== undefined;
    },
    async of(accountId, group) {
      if ('folder' in group) {
        if (!(await folderExists(pool, accountId, group.folder))) return undefined;
        return (await run(pool, inFolder, [accountId, group.folder])).map(({ id }) => id);
      }
      if ('tag' in group) return codesWithTag(pool, accountId, group.tag);
      return codesOfBatch(accountId, group.batch);
    },
    async labels(accountId, codeIds) {
      const rows = await run(pool, labels, [accountId, codeIds]);
      return new Map(rows.map(({ id, short_code, name }) => [id, { shortCode: short_code, name }]));
    },
  };
}

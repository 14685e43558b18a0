import type { Pool, PoolClient } from 'pg';
import { run, statement } from '../../common/postgres/sql.ts';
import { deletionInSteps } from '../db/delete-in-steps.ts';
import type { CodeRow } from './code-row.ts';

/**
 * A target as the columns of a code or of a version contain it. `policy`: a `Policy` in protobuf's JSON form, or null.
 */
export type StoredTarget = Pick<CodeRow, 'target_url' | 'policy'>;

/** Who changes a target, and why; the note is empty if there is none. */
export interface ChangeOfTarget {
  readonly author: string;
  readonly note: string;
}

/**
 * Adds a version, which becomes current no earlier than the previous one, and with the first change also version 1,
 * which the code itself contains until then: so creating a code costs nothing more. Indexes: codes_pkey,
 * target_versions_pkey.
 */
const insertVersions = statement(
  'codes_insert_target_versions',
  `insert into target_versions (account_id, code_id, version, target_url, policy, author, note, created_at)
   select c.account_id, c.id, v.*
   from codes c, lateral (values
     (1, c.target_url, c.policy, '', '', c.created_at),
     (c.target_version + 1, $3, $4::jsonb, $5, $6, greatest(c.updated_at, now()))
   ) as v (version, target_url, policy, author, note, created_at)
   where c.id = $1 and c.account_id = $2 and (v.version > 1 or c.target_version = 1)`,
);

/** What `VERSIONS_OF_CHANGED` needs of codes as they were, returned by a statement that updates them. */
export const TARGET_BEFORE =
  'old.target_url as old_url, old.policy as old_policy, old.target_version as old_target_version';

/**
 * Inserts the same versions of the codes in `changed`, an earlier part of the statement that has updated them. `author`
 * and `note`: expressions.
 */
export const VERSIONS_OF_CHANGED = (author: string, note: string) => `
  insert into target_versions (account_id, code_id, version, target_url, policy, author, note, created_at)
  select account_id, id, 1, old_url, old_policy, '', '', created_at from changed
  where old_target_version = 1 and target_version > 1
  union all
  select account_id, id, target_version, target_url, policy, ${author}, ${note}, updated_at from changed
  where target_version > old_target_version`;

/**
 * Records a change of a code's target before the code is updated. The code must be locked. Returns the new version, for
 * the code's `target_version`.
 */
export async function addTargetVersion(
  tx: PoolClient,
  { id, account_id, target_version }: CodeRow,
  { target_url, policy }: StoredTarget,
  { author, note }: ChangeOfTarget,
): Promise<number> {
  await run(tx, insertVersions, [id, account_id, target_url, policy, author, note]);
  return target_version + 1;
}

/** Index: target_versions_pkey. */
const deleteVersions = deletionInSteps('codes_delete_target_versions', {
  table: 'target_versions',
  key: 'account_id, code_id, version',
  where: 'account_id = $1',
});

/** Deletes all versions of an account. Continues where an earlier call was interrupted. `accountId`: UUID. */
export function deleteAccountTargetVersions(pool: Pool, accountId: string): Promise<void> {
  return deleteVersions(pool, [accountId]);
}

import { LockMode } from '@mikro-orm/core';
import type { MikroORM } from '@mikro-orm/postgresql';
import type { PoolClient } from 'pg';
import { run, statement } from '../../../common/postgres/sql.ts';
import { timeIfOpen } from '../../access/open-account.ts';
import { announceAll } from '../../codes/announce.ts';
import { CHANGED, CODE_COLUMNS, type CodeRow, codeFrom } from '../../codes/code-row.ts';
import { ormTransaction } from '../../db/orm-transaction.ts';
import { isCompleted } from '../../jobs/progress.ts';
import { taskOf } from '../../jobs/task.ts';
import { scanCounts } from '../../scans/reports/scan-counts.ts';
import { TargetChangeEntity } from './entities.ts';

/** The changes of targets that continue in the background. Index: target_changes_unfinished. */
export const TARGET_CHANGE_TASK = taskOf({
  name: 'target_change_go_on',
  table: 'target_changes',
  property: 'changeId',
});

/** Rows of one transaction: few enough that changes of single codes wait only briefly, and that progress is visible. */
const ROWS_A_STEP = 2_500;

/** The rows of a step, `r`. Index: target_change_rows_pkey. */
const NEXT_ROWS = `r.account_id = $1 and r.change_id = $2 and r.index >= $3 and r.index < $3 + ${ROWS_A_STEP}
  and r.outcome is null`;

/**
 * Codes are locked in the order of their ids, as in `deleteAccountCodes`, so that two transactions cannot deadlock. Deleted
 * ones too: they may be restored. Index: codes_pkey.
 */
const lock = statement(
  'target_changes_lock',
  `select from target_change_rows r join codes c on c.account_id = r.account_id and c.id = r.code_id
   where ${NEXT_ROWS} order by c.id desc for no key update of c`,
);

/** What becomes of a row. */
interface AppliedRow {
  readonly index: number;
  readonly code_id: string;
  /** The version before; null if the code was deleted meanwhile. */
  readonly old_version: number | null;
  readonly url_changed: boolean;
  readonly policy_changed: boolean;
  /** Whether the row was stored with the version that it created. */
  readonly expected: boolean;
}

/**
 * Changes the targets of the next rows, each as a new version, and with the first change of a code also adds version 1 (see
 * `addTargetVersion`). A version becomes current no earlier than the previous one. The
 * parts of the statement see the codes as they were before it. Indexes: codes_pkey, target_versions_pkey.
 */
const apply = statement<AppliedRow>(
  'target_changes_apply',
  `with next as materialized (
     select r.index, r.code_id, r.version as stored_version, c.target_version as old_version,
       c.created_at as code_created_at, c.updated_at as code_updated_at,
       c.target_url as old_url, c.policy as old_policy,
       coalesce(r.target_url, c.target_url) as target_url,
       case when r.policy is null then c.policy else nullif(r.policy, '{}') end as policy
     from target_change_rows r
     left join codes c on c.account_id = r.account_id and c.id = r.code_id and c.deleted_at is null
     where ${NEXT_ROWS}
   ), changed as materialized (
     select * from next
     where old_version is not null and (target_url, policy) is distinct from (old_url, old_policy)
   ), versions as (
     insert into target_versions (account_id, code_id, version, target_url, policy, author, note, created_at)
     select $1, n.code_id, v.*
     from changed n, lateral (values
       (1, n.old_url, n.old_policy, '', '', n.code_created_at),
       (n.old_version + 1, n.target_url, n.policy, $4, $5, greatest(n.code_updated_at, now()))
     ) as v (version, target_url, policy, author, note, created_at)
     where v.version > 1 or n.old_version = 1
   ), updated as (
     update codes c
     set target_url = n.target_url, policy = n.policy, target_version = n.old_version + 1, ${CHANGED}
     from changed n where c.account_id = $1 and c.id = n.code_id
   )
   select index, code_id, old_version, target_url is distinct from old_url as url_changed,
     policy is distinct from old_policy as policy_changed, stored_version is not distinct from old_version + 1 as expected
   from next`,
);

/** Index: codes_pkey. */
const readCodes = statement<CodeRow>(
  'target_changes_read_codes',
  `select ${CODE_COLUMNS} from codes c where c.account_id = $1 and c.id = any($2::uuid[])`,
);

/** Stores what differs from what was expected when the rows were stored. Index: target_change_rows_pkey. */
const correct = statement(
  'target_changes_correct',
  `update target_change_rows r set outcome = o.outcome, version = o.version, reason = o.reason
   from unnest($3::integer[], $4::text[], $5::integer[], $6::text[]) as o (index, outcome, version, reason)
   where r.account_id = $1 and r.change_id = $2 and r.index = o.index`,
);

/**
 * Applies the next rows of a change in one transaction. Returns whether there are more; false also if the change was deleted
 * or its account is closed. `id`: UUID.
 */
export function applyNext(orm: MikroORM, platformUrl: string, id: string): Promise<boolean> {
  return ormTransaction(orm, async (em, tx) => {
    // Other workers on this change wait, and continue after this step. Index: target_changes_pkey.
    const change = await em.findOne(TargetChangeEntity, { id }, { lockMode: LockMode.PESSIMISTIC_WRITE });
    if (!change || isCompleted(change)) return false;
    const now = await timeIfOpen(tx, change.accountId);
    if (!now) return false;
    const { accountId, position, author, note } = change;
    await run(tx, lock, [accountId, id, position]);
    const rows = await run(tx, apply, [accountId, id, position, author, note]);
    const changed = rows.filter(isChanged);
    await announceChanged(tx, platformUrl, accountId, changed);
    const corrections = rows.filter((row) => !isChanged(row) || !row.expected).map(correctionOf);
    if (corrections.length > 0) {
      const columns = (['index', 'outcome', 'version', 'reason'] as const).map((name) =>
        corrections.map((row) => row[name]),
      );
      await run(tx, correct, [accountId, id, ...columns]);
    }
    const failed = rows.filter(isDeleted).length;
    change.changed += changed.length;
    change.failed += failed;
    change.unchanged += rows.length - changed.length - failed;
    change.position = Math.min(change.total, position + ROWS_A_STEP);
    if (change.position === change.total) change.completedAt = now;
    return !isCompleted(change);
  });
}

function isDeleted({ old_version }: AppliedRow): boolean {
  return old_version === null;
}

function isChanged(row: AppliedRow): boolean {
  return !isDeleted(row) && (row.url_changed || row.policy_changed);
}

function correctionOf(row: AppliedRow) {
  const { index, old_version } = row;
  if (old_version === null) {
    return { index, outcome: 'failed', version: null, reason: 'The code was deleted before its target was changed.' };
  }
  if (!isChanged(row)) return { index, outcome: 'unchanged', version: old_version, reason: null };
  return { index, outcome: null, version: old_version + 1, reason: null };
}

/** Announces the codes of changed rows, as the transaction has left them. */
async function announceChanged(
  tx: PoolClient,
  platformUrl: string,
  accountId: string,
  rows: readonly AppliedRow[],
): Promise<void> {
  if (rows.length === 0) return;
  const ids = rows.map(({ code_id }) => code_id);
  const scans = await scanCounts(tx, accountId, ids);
  const changes = new Map(rows.map((row) => [row.code_id, changedFields(row)]));
  const codes = await run(tx, readCodes, [accountId, ids]);
  for (const [changed, same] of Map.groupBy(codes, ({ id }) => changes.get(id) ?? [])) {
    const codeOf = (row: CodeRow) => codeFrom(row, platformUrl, scans.get(row.id) ?? 0);
    await announceAll(tx, same, codeOf, { type: 'qr.updated', changed });
  }
}

const [URL_CHANGED, POLICY_CHANGED, BOTH_CHANGED] = [['target_url'], ['policy'], ['target_url', 'policy']] as const;

/** The fields that an event names; the same array for the same fields. */
function changedFields({ url_changed, policy_changed }: AppliedRow): readonly string[] {
  if (url_changed && policy_changed) return BOTH_CHANGED;
  return url_changed ? URL_CHANGED : POLICY_CHANGED;
}

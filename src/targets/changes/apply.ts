import { LockMode } from '@mikro-orm/core';
import type { MikroORM } from '@mikro-orm/postgresql';
import type { PoolClient } from 'pg';
import { run, statement } from '../../../common/postgres/sql.ts';
import { slices } from '../../../common/runtime/slices.ts';
import { timeIfOpen } from '../../access/account-is-open.ts';
import { announceAll } from '../../codes/announce.ts';
import { CHANGED, CODE_COLUMNS, type CodeRow, codeFrom } from '../../codes/code-row.ts';
import { TARGET_BEFORE, VERSIONS_OF_CHANGED } from '../../codes/target-versions.ts';
import { isCompleted } from '../../jobs/progress.ts';
import { runStep } from '../../jobs/step.ts';
import { taskOf } from '../../jobs/task.ts';
import { scanCounts } from '../../scans/reports/scan-counts.ts';
import { TargetChangeEntity } from './entities.ts';
import { CODE_PROBLEMS } from './find-codes.ts';

/** The changes of targets that continue in the background. Index: target_changes_unfinished. */
export const TARGET_CHANGE_TASK = taskOf({
  name: 'target_change_go_on',
  table: 'target_changes',
  property: 'changeId',
});

/** Rows of one transaction: few enough that changes of single codes wait only briefly, and that progress is visible. */
const ROWS_A_STEP = 2_500;

/**
 * The size in bytes of the policies that a step has in memory at a time. Ordinary steps have less. Of 2,500 codes with
 * policies of 59 KB it had 215 MB, four steps of a core 860 MB, and each core that took over the work of one that ran
 * out of memory did so too.
 */
const MAX_POLICY_BYTES = 8 * 1024 * 1024;

/*
 * The statements join the rows as a materialized part, which contains the account. If the planner knew that the account
 * of both tables is $1, and had no statistics of it yet, it would read all codes of the account for each row: 30 s for
 * a step. They don't ask whether a code is deleted: the planner would choose codes_in_folder, a partial index, whose
 * look-ups by id take twice as long.
 */

/**
 * Locks the codes and returns the rows. In the order of the codes' ids, as in `deleteAccountCodes`, so that two
 * transactions cannot deadlock. Deleted codes too: they may be restored. In a statement of its own, so that the next
 * one sees what the previous holders of the locks committed. `bytes`: of the policy that the code then has. Index:
 * codes_pkey.
 */
const lock = statement<{ index: number; deleted: boolean; bytes: number }>(
  'target_changes_lock',
  `with next as materialized (
     select index, account_id, code_id, policy from target_change_rows
     where account_id = $1 and change_id = $2 and index >= $3 and index < $3 + ${ROWS_A_STEP} and outcome is null
   )
   select n.index, c.deleted_at is not null as deleted,
     coalesce(octet_length(coalesce(n.policy, c.policy)::text), 0) as bytes
   from next n join codes c on c.account_id = n.account_id and c.id = n.code_id
   order by c.id desc for no key update of c`,
);

/** A code whose target has been changed, as it is then. */
interface ChangedCode extends CodeRow {
  /** Its row. */
  readonly index: number;
  readonly url_changed: boolean;
  readonly policy_changed: boolean;
  /** Whether the row was stored with the version that it created. */
  readonly expected: boolean;
}

/** What a step keeps of it. */
type VersionOfRow = Pick<ChangedCode, 'index' | 'target_version' | 'expected'>;

/** What a row makes of the target of its code. */
const NEW_URL = 'coalesce(new_url, target_url)';
const NEW_POLICY = `case when new_policy is null then policy else nullif(new_policy, '{}') end`;

/**
 * Changes the targets of rows $3, whose codes are not deleted, as far as they differ, each as a new version, and with
 * the first change of a code also adds version 1. Indexes: target_change_rows_pkey, codes_pkey, target_versions_pkey.
 */
const apply = statement<ChangedCode>(
  'target_changes_apply',
  `with stored as materialized (
     select index, account_id, code_id, version as stored_version, target_url as new_url, policy as new_policy
     from target_change_rows where account_id = $1 and change_id = $2 and index = any($3::integer[])
   ), changed as (
     update codes c
     set target_url = ${NEW_URL}, policy = ${NEW_POLICY}, target_version = target_version + 1, ${CHANGED}
     from stored n
     where c.account_id = n.account_id and c.id = n.code_id
       and (${NEW_URL}, ${NEW_POLICY}) is distinct from (target_url, policy)
     returning n.index, n.stored_version, ${TARGET_BEFORE}, c.*
   ), versions as (
     ${VERSIONS_OF_CHANGED('$4', '$5')}
   )
   select index, target_url is distinct from old_url as url_changed, policy is distinct from old_policy as policy_changed,
     stored_version is not distinct from target_version as expected, ${CODE_COLUMNS}
   from changed c`,
);

/** A row whose result differs from what was expected when it was stored. */
interface Correction {
  readonly index: number;
  readonly outcome: 'unchanged' | 'failed' | null;
  readonly version: number | null;
  readonly reason: string | null;
}

/** The rows $3, which have changed nothing; their codes are locked. Indexes: target_change_rows_pkey, codes_pkey. */
const readOthers = statement<Correction>(
  'target_changes_read_others',
  `with stored as materialized (
     select index, account_id, code_id from target_change_rows
     where account_id = $1 and change_id = $2 and index = any($3::integer[])
   )
   select r.index, case when c.deleted_at is null then c.target_version end as version,
     case when c.deleted_at is null then 'unchanged' else 'failed' end as outcome,
     case when c.deleted_at is not null then '${CODE_PROBLEMS.deleted}' end as reason
   from stored r join codes c on c.account_id = r.account_id and c.id = r.code_id`,
);

/** Index: target_change_rows_pkey. */
const correct = statement(
  'target_changes_correct',
  `with corrected as materialized (
     select $1::uuid as account_id, $2::uuid as change_id, o.*
     from unnest($3::integer[], $4::text[], $5::integer[], $6::text[]) as o (index, outcome, version, reason)
   )
   update target_change_rows r set outcome = o.outcome, version = o.version, reason = o.reason
   from corrected o where r.account_id = o.account_id and r.change_id = o.change_id and r.index = o.index`,
);

/**
 * Applies the next rows of a change in one transaction. Returns whether there are more; false also if another job
 * applies them, the change was deleted or its account is closed. `id`: UUID.
 */
export function applyNext(orm: MikroORM, platformUrl: string, id: string): Promise<boolean> {
  return runStep(orm, async (em, tx) => {
    // Another job on this change skips it, and ends: see `scheduleStalled`. Index: target_changes_pkey.
    const change = await em.findOne(TargetChangeEntity, { id }, { lockMode: LockMode.PESSIMISTIC_PARTIAL_WRITE });
    if (!change || isCompleted(change)) return false;
    const now = await timeIfOpen(tx, change.accountId);
    if (!now) return false;
    const { accountId, position, author, note } = change;
    const rows = await run(tx, lock, [accountId, id, position]);
    const current = rows.filter(({ deleted }) => !deleted);
    const versions: VersionOfRow[] = [];
    for (const slice of slices(current, { items: ROWS_A_STEP, size: MAX_POLICY_BYTES }, ({ bytes }) => bytes)) {
      const codes = await run(tx, apply, [accountId, id, slice.map(({ index }) => index), author, note]);
      await announceChanged(tx, platformUrl, accountId, codes);
      versions.push(...codes.map(({ index, target_version, expected }) => ({ index, target_version, expected })));
    }
    const changed = new Set(versions.map(({ index }) => index));
    const others = rows.flatMap(({ index }) => (changed.has(index) ? [] : index));
    const notChanged = others.length === 0 ? [] : await run(tx, readOthers, [accountId, id, others]);
    const unexpected = versions.filter(({ expected }) => !expected);
    await storeCorrections(tx, change, [...notChanged, ...unexpected.map(correctionOf)]);
    const failed = notChanged.filter(({ outcome }) => outcome === 'failed').length;
    change.changed += versions.length;
    change.failed += failed;
    change.unchanged += notChanged.length - failed;
    change.position = Math.min(change.total, position + ROWS_A_STEP);
    if (change.position === change.total) change.completedAt = now;
    return !isCompleted(change);
  });
}

function correctionOf({ index, target_version }: VersionOfRow): Correction {
  return { index, outcome: null, version: target_version, reason: null };
}

async function storeCorrections(
  tx: PoolClient,
  { accountId, id }: TargetChangeEntity,
  corrections: readonly Correction[],
): Promise<void> {
  if (corrections.length === 0) return;
  const fields = ['index', 'outcome', 'version', 'reason'] as const;
  await run(tx, correct, [accountId, id, ...fields.map((field) => corrections.map((row) => row[field]))]);
}

/** Announces changed codes, as the transaction has left them. */
async function announceChanged(
  tx: PoolClient,
  platformUrl: string,
  accountId: string,
  codes: readonly ChangedCode[],
): Promise<void> {
  if (codes.length === 0) return;
  const scans = await scanCounts(
    tx,
    accountId,
    codes.map(({ id }) => id),
  );
  const codeOf = (row: CodeRow) => codeFrom(row, platformUrl, scans.get(row.id) ?? 0);
  await announceAll(tx, codes, codeOf, (code) => ({ type: 'qr.updated', changed: changedFields(code) }));
}

/** The fields that the event of a code names. */
function changedFields({ url_changed, policy_changed }: ChangedCode): string[] {
  return [...(url_changed ? ['target_url'] : []), ...(policy_changed ? ['policy'] : [])];
}

import type { Pool, PoolClient } from 'pg';
import type { Logger } from 'pino';
import { byIndex, first, run, statement, transactionWithin } from '../../../common/postgres/sql.ts';
import { isLockTimeout } from '../../../common/postgres/unavailable.ts';
import { repeatUntilStopped } from '../../../common/runtime/repeat-until-stopped.ts';
import { throttledFailures } from '../../../common/runtime/throttled-report.ts';
import { columnsOf, listed } from '../../db/columns.ts';
import { type Notifications, notifying } from '../../db/notifications.ts';
import { codeEvent } from '../../events/events.ts';
import { copyToOutbox } from '../../events/outbox.ts';
import type { LabelledCodes } from '../../taxonomy/labelled-codes.ts';
import { CHANGED, scannedCodeFrom } from '../code-row.ts';
import { RelabelledCodeEntity } from '../entities.ts';
import { codeRows, lockCodes } from '../find-code.ts';

/** Codes announced per transaction. */
const MAX_CODES = 500;
/**
 * How long announcing them waits for a lock, in ms: while one account's codes are locked, those of others are
 * announced.
 */
const LOCK_MS = 2_000;
/**
 * How long announcing them may take, in ms: many times what it takes. For a Postgres that vanishes meanwhile: see
 * `PROMPT_MS`.
 */
const ANNOUNCING_MS = 20_000;
/** How often to look for codes while notifications don't arrive, and after a failure, in ms. */
const POLL_MS = 1_000;

const COLUMNS = listed(columnsOf(RelabelledCodeEntity));

/**
 * Increments the versions of a label's codes and queues the codes for their announcement. A code that is queued already
 * is announced once for all its changes. Codes are locked in the order of their ids, as in `deleteAccountCodes`, so
 * that two transactions cannot deadlock; deleted ones too, so that a code that is restored meanwhile is either
 * announced here, or restored with its changed label. `labelled`: locks the codes of label $2. Tags and codes are
 * joined by the account as well: if the planner knew that it is $1, and had no statistics of it yet, it could read all
 * its codes for each one.
 */
const labelChanged = (field: 'folder' | 'tags', labelled: string) =>
  statement(
    `codes_${field}_changed`,
    `with labelled as materialized (
       ${labelled}
     ), changed as (
       update codes c set ${CHANGED} from labelled
       where c.account_id = labelled.account_id and c.id = labelled.id and labelled.deleted_at is null
       returning c.account_id, c.id
     ), recorded as (
       insert into relabelled_codes (${COLUMNS}) select account_id, id, array['${field}'] from changed
       on conflict (account_id, code_id) do update
       set changed = array(select distinct unnest(relabelled_codes.changed || excluded.changed) order by 1)
     )
     select ${notifying('labels')} from changed limit 1`,
  );

/** Indexes: codes_filed, codes_pkey. */
const folderChanged = labelChanged(
  'folder',
  `select account_id, id, deleted_at from codes where account_id = $1 and folder_id = $2
   order by id desc for no key update`,
);

/** Indexes: code_tags_by_tag, codes_pkey. */
const tagChanged = labelChanged(
  'tags',
  `select c.account_id, c.id, c.deleted_at
   from (select $1::uuid as account_id, code_id from code_tags where tag_id = $2 offset 0) t
   join codes c on c.account_id = t.account_id and c.id = t.code_id
   order by c.id desc for no key update of c`,
);

/** Includes deleted codes, which may be restored. Index: codes_filed. */
const moveToFolder = statement(
  'codes_move_to_folder',
  'update codes set folder_id = $3 where folder_id = $2 and account_id = $1',
);

/** Updates the codes of labels for the taxonomy module. */
export const labelledCodes: LabelledCodes = {
  async changed(tx, accountId, kind, label) {
    await run(tx, kind === 'folder' ? folderChanged : tagChanged, [accountId, label]);
  },
  async moveToFolder(tx, accountId, from, to) {
    await run(tx, folderChanged, [accountId, from]);
    await run(tx, moveToFolder, [accountId, from, to]);
  },
};

interface QueuedCodes {
  readonly account_id: string;
  readonly ids: string[];
}

/**
 * The next queued codes of the account after $1, or else of the first one: an account with millions of them takes turns
 * with the others. Index: relabelled_codes_pkey, forced by `byIndex`.
 */
const next = statement<QueuedCodes>(
  'codes_next_relabelled',
  `select account_id, array_agg(code_id) as ids
   from (select account_id, code_id from relabelled_codes
         where account_id = coalesce(
           (select account_id from relabelled_codes where account_id > $1 order by account_id limit 1),
           (select account_id from relabelled_codes order by account_id limit 1))
         order by account_id, code_id limit ${MAX_CODES}) as first_codes
   group by account_id`,
);

/** Index: relabelled_codes_pkey, forced like that. */
const dequeue = statement<{ code_id: string; changed: string[] }>(
  'codes_dequeue_relabelled',
  'delete from relabelled_codes where account_id = $1 and code_id = any($2::uuid[]) returning code_id, changed',
);

/**
 * Starts publishing `qr.updated` events of codes whose folder or tag was renamed, merged or deleted, each with the
 * current state of the code, 500 in a transaction. Routes are not published, because they are unchanged. Any number of
 * processes may do this.
 */
export function startRelabelledAnnouncements(options: {
  pool: Pool;
  notifications: Notifications;
  platformUrl: string;
  logger: Logger;
}): { stop(): Promise<void> } {
  const { pool, notifications, platformUrl, logger } = options;
  const wakeup = notifications.wakeup('labels', POLL_MS);
  const reportFailure = throttledFailures((fields) =>
    logger.warn(fields, 'announcing codes with changed labels failed; it is retried'),
  );
  let lastAccount: string | null = null;
  /** Whether there may be more. */
  const announce = (): Promise<boolean> =>
    transactionWithin(pool, ANNOUNCING_MS, async (tx) => {
      await tx.query(`set local lock_timeout = ${LOCK_MS}`);
      await run(tx, byIndex);
      const queued = await first(tx, next, [lastAccount]);
      if (!queued) return false;
      // Even if announcing its codes fails: then it is the turn of the others, too.
      lastAccount = queued.account_id;
      await announceQueued(tx, platformUrl, queued);
      return true;
    }).catch((error: unknown) => {
      if (!isLockTimeout(error)) throw error;
      return true;
    });
  return repeatUntilStopped(
    async () => {
      if (!(await announce())) await wakeup.wait();
    },
    { retryMs: POLL_MS, onError: reportFailure, onStop: () => wakeup.notify() },
  );
}

/** Announces queued codes of an account. */
async function announceQueued(
  tx: PoolClient,
  platformUrl: string,
  { account_id: accountId, ids }: QueuedCodes,
): Promise<void> {
  // Locked, so that the event of a later change is published later. Codes are locked before their rows of
  // `relabelled_codes`, as in changes of labels, to avoid deadlocks.
  const locked = await lockCodes(tx, accountId, ids);
  const dequeued = await run(tx, dequeue, [accountId, ids]);
  const changed = new Map(dequeued.map((row) => [row.code_id, row.changed]));
  // Another process may have announced some meanwhile; deleted codes have already been announced as such.
  const announced = locked.filter((row) => row.deleted_at === null && changed.has(row.id)).map((row) => row.id);
  await copyToOutbox(tx, await codeRows(tx, accountId, announced), (row) => {
    const change = { type: 'qr.updated', changed: changed.get(row.id) ?? [] } as const;
    return [codeEvent(accountId, scannedCodeFrom(row, platformUrl), change)];
  });
}

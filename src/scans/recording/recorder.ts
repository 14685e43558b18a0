import type { Subscription } from '../../../common/log/log.ts';
import { SCANS } from '../../../common/log/topics.ts';
import { attemptEach } from '../../../common/runtime/attempt-each.ts';
import { hourly, periodically } from '../../../common/runtime/periodically.ts';
import { throttledFailures } from '../../../common/runtime/throttled-report.ts';
import { postgresNow } from '../../db/clock.ts';
import { type ArchiveOptions, archiveMonths } from '../archive/archive.ts';
import { finishDeletions } from '../delete-account-scans.ts';
import { foldIncrements } from '../fold-increments.ts';
import { ensureMonths, monthAfter, monthOf } from '../partitions.ts';
import { observeWaitingRecords } from './metrics.ts';
import { createPollHandler, type PollHandlerOptions } from './poll-handler.ts';
import { destroySalts, makeSalts } from './visitors.ts';

/** Larger polls update each counter less often per scan; 10,000 scans take about 0.3 s. */
const MAX_POLL_RECORDS = 10_000;

/** How often it creates missing visitor salts, in ms: a crash of Postgres empties their unlogged table. */
const SALTS_MS = 60_000;

/**
 * How often increments are folded into the counters of accounts and weeks, in ms. A longer interval is cheaper, since
 * increments of one counter are summed first; but reports read unfolded increments one by one.
 */
const FOLD_MS = 10_000;
/** One of so many folds takes all increments, the others only what follows those that this process has folded. */
const FOLDS_A_ROUND = 6;

/** Dependencies of the recorder. */
export interface RecorderOptions extends PollHandlerOptions {
  /** Unset: nothing is archived. */
  readonly archive?: ArchiveOptions;
}

/**
 * Moves scans from the log into Postgres, as one member of the consumer group `signpost.recorder`; any number may run.
 * A poll is recorded as a whole or delivered again. Records that cannot be decoded are published as dead letters and do
 * not stop the others.
 */
export function startRecorder(options: RecorderOptions): Subscription {
  const {
    log,
    logger,
    database: { pool },
  } = options;
  const handle = createPollHandler(options);
  const upkeep = startUpkeep(options);
  const salts = periodically(SALTS_MS, 'creating the visitor salts', logger, async () =>
    makeSalts(pool, await postgresNow(pool)),
  );
  const waiting = observeWaitingRecords(options);
  // At first, because a recorder that died may have left increments, and after a poll. Later, an idle recorder queries
  // nothing.
  let foldsLeft = FOLDS_A_ROUND;
  let folds = 0;
  let folded = '0';
  const folding = periodically(FOLD_MS, 'folding the counters of scans', logger, async () => {
    if (foldsLeft === 0) return;
    foldsLeft--;
    const all = folds++ % FOLDS_A_ROUND === 0;
    try {
      folded = (await foldIncrements(pool, all ? '0' : folded)) ?? folded;
    } catch (error) {
      foldsLeft = FOLDS_A_ROUND;
      throw error;
    }
  });
  const reportFailure = throttledFailures((fields) =>
    logger.warn(fields, 'recording scans failed; they stay in the log and are retried'),
  );
  const subscription = log.consume({
    topic: SCANS.name,
    group: 'signpost.recorder',
    maxRecords: MAX_POLL_RECORDS,
    async handle(records, from, topicId) {
      await handle(records, from, topicId);
      foldsLeft = FOLDS_A_ROUND;
    },
    onError: reportFailure,
  });
  return {
    async stop() {
      // Interrupted first: it takes longest to end.
      const upkeepStopped = upkeep.stop();
      await subscription.stop();
      waiting.stop();
      await folding.stop();
      await salts.stop();
      await upkeepStopped;
    },
  };
}

/**
 * Once an hour: creates next month's partition, destroys the salts of past days, finishes interrupted deletions, and
 * archives, each also if another one fails. Any number of processes may do this at once. A stop interrupts deletions
 * and archiving, which may take many minutes; they continue at the next start.
 */
function startUpkeep({ database: { pool }, logger, archive }: RecorderOptions): Subscription {
  return hourly('upkeep of the scans', logger, async (signal) => {
    const interruptible = (step: () => Promise<void>) => () =>
      step().catch((error: unknown) => {
        if (!signal.aborted) throw error;
      });
    const now = await postgresNow(pool);
    const month = monthOf(now);
    const steps = [
      () => ensureMonths(pool, [month, monthAfter(month)]),
      () => destroySalts(pool, now),
      ...(archive
        ? [
            interruptible(() => finishDeletions(pool, archive.folder, signal)),
            interruptible(() => archiveMonths(pool, archive, now, signal)),
          ]
        : []),
    ];
    await attemptEach(steps, (step) => step());
  });
}

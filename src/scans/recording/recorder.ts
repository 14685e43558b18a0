import type { Logger } from 'pino';
import { GATEWAY_FIGURES, readGatewayFigures } from '../../../common/contract/gateway-figures.ts';
import { type Log, type LogRecord, ReadAgain, type Subscription } from '../../../common/log/log.ts';
import { SCANS, SCANS_DEAD_LETTERS } from '../../../common/log/topics.ts';
import { attemptEach } from '../../../common/runtime/attempt-each.ts';
import { hourly, periodically } from '../../../common/runtime/periodically.ts';
import { throttledFailures } from '../../../common/runtime/throttled-report.ts';
import { postgresNow } from '../../db/clock.ts';
import type { Database } from '../../db/database.ts';
import { type ArchiveOptions, archiveMonths } from '../archive/archive.ts';
import { dayOf } from '../days.ts';
import { finishDeletions } from '../delete-account-scans.ts';
import { ensureMonths, monthAfter, monthOf } from '../partitions.ts';
import { foldIncrements } from '../rollups/fold.ts';
import { type DecodedScan, decodeScan } from './decode-scan.ts';
import { derive } from './derive.ts';
import { legacyScanConverter } from './legacy-scans.ts';
import { observeWaitingRecords, scanStageCounter } from './metrics.ts';
import { type Poll, RecordsMissing, record } from './record.ts';
import { withoutVisitorData } from './scan-fields.ts';
import { destroySalts, firstSaltedDay, makeSalts } from './visitors.ts';

/** Larger polls update each counter less often per scan; 10,000 scans take about 0.3 s. */
const MAX_POLL_RECORDS = 10_000;

/** How often it creates missing visitor salts, in ms: a crash of Postgres empties their unlogged table. */
const SALTS_MS = 60_000;

/**
 * How often increments are folded into the counters of accounts and weeks, in ms. A longer interval is cheaper, since
 * increments of one counter are summed first; but reports read unfolded increments one by one.
 */
const FOLD_MS = 10_000;

/** Dependencies of the recorder. */
export interface RecorderOptions {
  readonly log: Log;
  readonly database: Database;
  readonly logger: Logger;
  /** Unset: nothing is archived. */
  readonly archive?: ArchiveOptions;
}

/**
 * Moves scans from the log into Postgres, as one member of the consumer group `signpost.recorder`; any number may run.
 * A poll is recorded as a whole or delivered again. Records that cannot be decoded are published as dead letters and do
 * not stop the others.
 */
export async function startRecorder(options: RecorderOptions): Promise<Subscription> {
  const {
    log,
    logger,
    database: { pool },
  } = options;
  const handle = await createPollHandler(options);
  const upkeep = startUpkeep(options);
  const salts = periodically(SALTS_MS, 'creating the visitor salts', logger, async () =>
    makeSalts(pool, await postgresNow(pool)),
  );
  const waiting = observeWaitingRecords(options);
  // True at first, because a recorder that died may have left increments. Later, an idle recorder queries nothing.
  let unfolded = true;
  const folding = periodically(FOLD_MS, 'folding the counters of scans', logger, async () => {
    if (!unfolded) return;
    unfolded = false;
    await foldIncrements(pool).catch((error: unknown) => {
      unfolded = true;
      throw error;
    });
  });
  const reportFailure = throttledFailures((fields) =>
    logger.warn(fields, 'recording scans failed; they stay in the log and are retried'),
  );
  const subscription = log.consume({
    topic: SCANS.name,
    group: 'signpost.recorder',
    maxRecords: MAX_POLL_RECORDS,
    async handle(records, from) {
      await handle(records, from);
      unfolded = true;
    },
    onError: reportFailure,
  });
  return {
    async stop() {
      await subscription.stop();
      waiting.stop();
      await folding.stop();
      await salts.stop();
      await upkeep.stop();
    },
  };
}

/**
 * Creates the handler of one poll of `signpost.scans.v1`. It rejects when Postgres, or the log for dead letters, is
 * unavailable.
 */
export async function createPollHandler({
  log,
  database: { pool },
  logger,
}: RecorderOptions): Promise<(records: readonly LogRecord[], from?: bigint) => Promise<void>> {
  const convertLegacy = legacyScanConverter(pool);
  const existingMonths = new Set<string>();
  const countStages = scanStageCounter();
  /** Dead letters of polls that could not be recorded: these are delivered again, and the dead letters are not. */
  const published = new Set<string>();

  /**
   * Rejects with a `ReadAgain` if the log still has records that Postgres lacks. A failover to a standby that had not
   * received the last commits, or a restore, takes back what was recorded, but not what was committed in the log.
   */
  async function readMissing(position: bigint, { partition, from }: Poll): Promise<void> {
    const oldest = (await log.since(SCANS.name, 0)).get(partition) ?? from;
    const start = position > oldest ? position : oldest;
    if (start < from) {
      logger.warn(
        { partition, records: Number(from - start) },
        'Postgres lacks scans; they are read from the log again',
      );
      throw new ReadAgain(start);
    }
    logger.error({ partition, records: Number(from - position) }, 'the log has deleted scans that were not recorded');
  }

  async function recordPoll(poll: Poll, firstDay: string): ReturnType<typeof record> {
    const deriveScan = (scan: DecodedScan) => derive(scan, firstDay);
    try {
      return await record(pool, poll, deriveScan);
    } catch (error) {
      if (!(error instanceof RecordsMissing)) throw error;
      await readMissing(error.position, poll);
      return await record(pool, { ...poll, from: error.position }, deriveScan);
    }
  }

  const handle = async (records: readonly LogRecord[], from = records[0]?.offset ?? 0n) => {
    // By a clock of its own that is a day behind, this core would take all scans for dead letters.
    const now = await postgresNow(pool);
    const scans: DecodedScan[] = [];
    const deadLetters: { record: LogRecord; reason: string }[] = [];
    for (const record of records) {
      const scan = decodeScan(record, now);
      if ('undecodable' in scan) deadLetters.push({ record, reason: scan.undecodable });
      else scans.push(scan);
    }
    const unpublished = deadLetters.filter(({ record }) => !published.has(positionOf(record)));
    if (unpublished.length > 0) {
      logger.error(
        { count: unpublished.length, reason: unpublished[0]?.reason },
        'scans that cannot be decoded were sent to the dead-letter topic',
      );
      await log.publish(
        SCANS_DEAD_LETTERS.name,
        unpublished.map(({ record: { key, value, headers }, reason }) => ({
          key,
          value: value && withoutVisitorData(value),
          headers: { ...headers, reason },
        })),
      );
      for (const { record } of unpublished) published.add(positionOf(record));
    }
    const days = new Set(scans.map(({ scannedAt }) => dayOf(scannedAt)));
    const missing = new Set([...days].map((day) => day.slice(0, 'YYYY-MM'.length))).difference(existingMonths);
    await ensureMonths(pool, [...missing]);
    for (const month of missing) existingMonths.add(month);
    const firstDay = firstSaltedDay(now);
    const poll = {
      scans: await convertLegacy(scans, now),
      deadLetters: deadLetters.map(({ record }) => record),
      now,
      partition: records.at(-1)?.partition ?? 0,
      from,
      next: (records.at(-1)?.offset ?? -1n) + 1n,
      gateways: records
        .filter(({ headers }) => GATEWAY_FIGURES in headers)
        .flatMap(({ headers }) => readGatewayFigures(headers[GATEWAY_FIGURES])),
    };
    try {
      countStages(await recordPoll(poll, firstDay));
      for (const { record } of deadLetters) published.delete(positionOf(record));
    } catch (error) {
      // A month may have been detached meanwhile: the next attempt checks again.
      existingMonths.clear();
      throw error;
    }
  };

  return handle;
}

function positionOf({ partition, offset }: LogRecord): string {
  return `${partition} ${offset}`;
}

/**
 * Once an hour: creates next month's partition, destroys the salts of past days, finishes interrupted deletions, and
 * archives. Any number of processes may do this at once.
 */
function startUpkeep({ database: { pool }, logger, archive }: RecorderOptions): Subscription {
  return hourly('upkeep of the scans', logger, async () => {
    const now = await postgresNow(pool);
    const month = monthOf(now);
    await ensureMonths(pool, [month, monthAfter(month)]);
    await destroySalts(pool, now);
    if (!archive) return;
    const steps = [() => finishDeletions(pool, archive.folder), () => archiveMonths(pool, archive, now)];
    await attemptEach(steps, (step) => step());
  });
}

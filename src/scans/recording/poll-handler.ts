import type { Logger } from 'pino';
import { GATEWAY_FIGURES, readGatewayFigures } from '../../../common/contract/gateway-figures.ts';
import { type ConsumeOptions, type Log, type LogRecord, ReadAgain } from '../../../common/log/log.ts';
import { SCANS } from '../../../common/log/topics.ts';
import { postgresNow } from '../../db/clock.ts';
import type { Database } from '../../db/database.ts';
import { databaseCreatedAt } from '../../db/schema-version.ts';
import { dayOf } from '../days.ts';
import { ensureMonths } from '../partitions.ts';
import { type DeadLetter, deadLetterPublisher } from './dead-letters.ts';
import { type DecodedScan, decodeScan } from './decode-scan.ts';
import { derive } from './derive.ts';
import { scanStageCounter } from './metrics.ts';
import { type Poll, RecordsMissing, record } from './record.ts';
import { firstSaltedDay } from './visitors.ts';

export interface PollHandlerOptions {
  readonly log: Log;
  readonly database: Database;
  readonly logger: Logger;
}

/**
 * Creates the handler of one poll of `signpost.scans.v1`. It rejects when Postgres, or the log for dead letters, is
 * unavailable.
 */
export function createPollHandler({ log, database: { pool }, logger }: PollHandlerOptions): ConsumeOptions['handle'] {
  const existingMonths = new Set<string>();
  const countStages = scanStageCounter();
  const deadLetters = deadLetterPublisher(log, logger);

  /**
   * Rejects with a `ReadAgain` if the log still has records that Postgres lacks. A failover to a standby that had not
   * received the last commits, or a restore, takes back what was recorded, but not what was committed in the log. A
   * partition without a position lacks everything that was published since the database was created, but nothing older:
   * the log may be older than the database.
   */
  async function readMissing(position: bigint | undefined, { partition, from }: Poll): Promise<void> {
    const time = position === undefined ? await databaseCreatedAt(pool) : 0;
    const oldest = (await log.since(SCANS.name, time)).get(partition) ?? from;
    const start = position !== undefined && position > oldest ? position : oldest;
    if (start < from) {
      logger.warn(
        { partition, records: Number(from - start) },
        'Postgres lacks scans; they are read from the log again',
      );
      throw new ReadAgain(start);
    }
    if (position === undefined) return;
    logger.error({ partition, records: Number(from - position) }, 'the log has deleted scans that were not recorded');
  }

  async function recordPoll(poll: Poll, firstDay: string): ReturnType<typeof record> {
    const deriveScan = (scan: DecodedScan) => derive(scan, firstDay);
    try {
      return await record(pool, poll, deriveScan);
    } catch (error) {
      if (!(error instanceof RecordsMissing)) throw error;
      await readMissing(error.position, poll);
      return await record(pool, { ...poll, from: error.position ?? 0n }, deriveScan);
    }
  }

  async function ensureMonthsOf(scans: readonly DecodedScan[]): Promise<void> {
    const days = new Set(scans.map(({ scannedAt }) => dayOf(scannedAt)));
    const missing = new Set([...days].map((day) => day.slice(0, 'YYYY-MM'.length))).difference(existingMonths);
    await ensureMonths(pool, [...missing]);
    for (const month of missing) existingMonths.add(month);
  }

  return async (records, from, topicId) => {
    // A core whose own clock is a day behind would take all scans for dead letters.
    const now = await postgresNow(pool);
    const { scans, undecodable } = decodeAll(records, now);
    await deadLetters.publish(undecodable);
    await ensureMonthsOf(scans);
    const poll = {
      scans,
      deadLetters: undecodable.map(({ record }) => record),
      now,
      partition: records.at(-1)?.partition ?? 0,
      topicId,
      from,
      next: (records.at(-1)?.offset ?? -1n) + 1n,
      gateways: records
        .filter(({ headers }) => GATEWAY_FIGURES in headers)
        .flatMap(({ headers }) => readGatewayFigures(headers[GATEWAY_FIGURES])),
    };
    try {
      countStages(await recordPoll(poll, firstSaltedDay(now)));
      deadLetters.recorded(undecodable);
    } catch (error) {
      // A month may have been detached meanwhile: the next attempt checks again.
      existingMonths.clear();
      throw error;
    }
  };
}

function decodeAll(records: readonly LogRecord[], now: number): { scans: DecodedScan[]; undecodable: DeadLetter[] } {
  const scans: DecodedScan[] = [];
  const undecodable: DeadLetter[] = [];
  for (const record of records) {
    const scan = decodeScan(record, now);
    if ('undecodable' in scan) undecodable.push({ record, reason: scan.undecodable });
    else scans.push(scan);
  }
  return { scans, undecodable };
}

import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Logger } from 'pino';
import { GATEWAY_FIGURES, readGatewayFigures } from '../../../common/contract/gateway-figures.ts';
import type { Log, LogRecord, Subscription } from '../../../common/log/log.ts';
import { SCANS, SCANS_DEAD_LETTERS } from '../../../common/log/topics.ts';
import { hourly, periodically } from '../../../common/runtime/periodically.ts';
import type { Database } from '../../db/database.ts';
import { type ArchiveOptions, archiveMonths } from '../archive/archive.ts';
import { dayOf } from '../days.ts';
import { finishDeletions } from '../delete-account-scans.ts';
import { ensureMonths, monthAfter, monthOf } from '../partitions.ts';
import { derive } from './derive.ts';
import { formerScans } from './former-scans.ts';
import { measureWaiting, stagesOfScans } from './measure.ts';
import { readScan, type ToldScan } from './read-scan.ts';
import { record } from './record.ts';
import { withoutReader } from './scan-fields.ts';
import { destroySalts, firstSaltedDay, makeSalts } from './visitors.ts';

const tracer = trace.getTracer('signpost.recorder');

/** The more scans at once, the fewer the moves of each counter; 10,000 take some 0.3 s. */
const POLL = 10_000;

/** How often it sees to the salts of visitors, in ms: a crash of Postgres empties their table. */
const SALTS_MS = 60_000;

/** What the recorder works with. */
export interface RecorderOptions {
  readonly log: Log;
  readonly database: Database;
  readonly logger: Logger;
  /** Missing: nothing is archived. */
  readonly archive?: ArchiveOptions;
}

/**
 * Carries scans from the log into Postgres, as one member of the group `signpost.recorder`; any number may run. A poll
 * is recorded whole or comes again. What can't be read goes to the dead letters, and the rest moves on.
 */
export async function startRecorder(options: RecorderOptions): Promise<Subscription> {
  const {
    log,
    logger,
    database: { pool },
  } = options;
  const handle = await recordingOf(options);
  const upkeep = startUpkeep(options);
  const salts = periodically(SALTS_MS, 'making the salts of visitors', logger, () => makeSalts(pool, Date.now()));
  const waiting = measureWaiting(options);
  const subscription = log.consume({
    topic: SCANS.name,
    group: 'signpost.recorder',
    maxRecords: POLL,
    handle,
    onError: (error) => logger.warn({ err: error }, 'scans wait to be recorded'),
  });
  return {
    async stop() {
      await subscription.stop();
      waiting.stop();
      await salts.stop();
      await upkeep.stop();
    },
  };
}

/** Handles one poll of `signpost.scans.v1`. Rejects when Postgres, or the log that takes dead letters, is away. */
export async function recordingOf({
  log,
  database: { pool },
  logger,
}: RecorderOptions): Promise<(records: readonly LogRecord[]) => Promise<void>> {
  const inNewForm = formerScans(pool);
  const months = new Set<string>();
  const measure = stagesOfScans();

  const handle = async (records: readonly LogRecord[]) => {
    const now = Date.now();
    const told: ToldScan[] = [];
    const dead: { record: LogRecord; reason: string }[] = [];
    for (const record of records) {
      const scan = readScan(record, now);
      if ('unreadable' in scan) dead.push({ record, reason: scan.unreadable });
      else told.push(scan);
    }
    if (dead.length > 0) {
      logger.error(
        { count: dead.length, reason: dead[0]?.reason },
        'scans that can not be read went to the dead letters',
      );
      await log.publish(
        SCANS_DEAD_LETTERS.name,
        dead.map(({ record: { key, value, headers }, reason }) => ({
          key,
          value: value && withoutReader(value),
          headers: { ...headers, reason },
        })),
      );
    }
    const days = new Set(told.map(({ scannedAt }) => dayOf(scannedAt)));
    const missing = new Set([...days].map((day) => day.slice(0, 'YYYY-MM'.length))).difference(months);
    await ensureMonths(pool, [...missing]);
    for (const month of missing) months.add(month);
    const firstDay = firstSaltedDay(now);
    const poll = {
      told: await inNewForm(told, now),
      dead: dead.map(({ record }) => record),
      partition: records.at(-1)?.partition ?? 0,
      next: (records.at(-1)?.offset ?? -1n) + 1n,
      gateways: records
        .filter(({ headers }) => GATEWAY_FIGURES in headers)
        .flatMap(({ headers }) => readGatewayFigures(headers[GATEWAY_FIGURES])),
    };
    try {
      measure(await record(pool, poll, (scan) => derive(scan, firstDay)));
    } catch (error) {
      // A month may have been detached meanwhile: the next try looks again.
      months.clear();
      throw error;
    }
  };

  return (records) =>
    tracer.startActiveSpan(
      `process ${SCANS.name}`,
      {
        kind: SpanKind.CONSUMER,
        attributes: {
          'messaging.operation.type': 'process',
          'messaging.destination.name': SCANS.name,
          'messaging.batch.message_count': records.length,
        },
      },
      async (span) => {
        try {
          await handle(records);
        } catch (error) {
          span.setStatus({ code: SpanStatusCode.ERROR });
          throw error;
        } finally {
          span.end();
        }
      },
    );
}

/**
 * Once an hour: next month's partition, the end of salts whose day is over, what deletions have left, and the archive.
 * Any number may do it at once.
 */
function startUpkeep({ database: { pool }, logger, archive }: RecorderOptions): Subscription {
  return hourly('upkeep of the scans', logger, async () => {
    const month = monthOf(Date.now());
    await ensureMonths(pool, [month, monthAfter(month)]);
    await destroySalts(pool, Date.now());
    if (!archive) return;
    await finishDeletions(pool, archive.folder);
    await archiveMonths(pool, archive, Date.now());
  });
}

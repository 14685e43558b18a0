import type { Logger } from 'pino';
import { type Log, type LogRecord, type NewRecord, RecordsTooLarge } from '../../../common/log/log.ts';
import { SCANS_DEAD_LETTERS } from '../../../common/log/topics.ts';
import { withoutVisitorData } from './scan-fields.ts';

/** A record that cannot be decoded. */
export interface DeadLetter {
  readonly record: LogRecord;
  /** A sentence for readers of the dead letters. */
  readonly reason: string;
}

/** Maximum length of a key. Longer ones are truncated: with one of 1 MB kafkajs blocks the process for minutes. */
const MAX_KEY = 1_000;

/** Publishes records of scans that cannot be decoded as dead letters. */
export interface DeadLetterPublisher {
  /** Publishes the dead letters of a poll that it has not published before. */
  publish(letters: readonly DeadLetter[]): Promise<void>;
  /** Called once their poll is recorded, so that it is not delivered again. */
  recorded(letters: readonly DeadLetter[]): void;
}

export function deadLetterPublisher(log: Log, logger: Logger): DeadLetterPublisher {
  /**
   * Positions of published dead letters whose poll is not recorded yet: it is delivered again, but they must not be.
   */
  const published = new Set<string>();

  return {
    async publish(letters) {
      const unpublished = letters.filter(({ record }) => !published.has(positionOf(record)));
      if (unpublished.length === 0) return;
      logger.error(
        { count: unpublished.length, reason: unpublished[0]?.reason },
        'scans that cannot be decoded were sent to the dead-letter topic',
      );
      await publish(
        log,
        unpublished.map(({ record: { key, value, headers }, reason }) => ({
          key: key.slice(0, MAX_KEY),
          value: value && withoutVisitorData(value),
          headers: { ...headers, reason },
        })),
      );
      for (const { record } of unpublished) published.add(positionOf(record));
    },
    recorded(letters) {
      for (const { record } of letters) published.delete(positionOf(record));
    },
  };
}

interface DeadLetterRecord extends NewRecord {
  readonly headers: { readonly reason: string };
}

/**
 * Publishes records. With the reason, or uncompressed, one may be larger than its topic allows, though the log accepted
 * it as a scan: of such a record only the key and the reason are kept, since it would be rejected for ever.
 */
async function publish(log: Log, records: readonly DeadLetterRecord[]): Promise<void> {
  try {
    await log.publish(SCANS_DEAD_LETTERS.name, records);
  } catch (error) {
    if (!(error instanceof RecordsTooLarge)) throw error;
    const [refused, ...others] = records.slice(error.accepted);
    if (!refused) throw error;
    await log.publish(SCANS_DEAD_LETTERS.name, [shortened(refused)]);
    if (others.length > 0) await publish(log, others);
  }
}

function shortened({ key, headers: { reason } }: DeadLetterRecord): DeadLetterRecord {
  return {
    key,
    value: null,
    headers: { reason: `${reason} Its value and headers are left out, as the dead letter would be too large.` },
  };
}

function positionOf({ partition, offset }: LogRecord): string {
  return `${partition} ${offset}`;
}

import type { Logger } from 'pino';
import type { Log, LogRecord } from '../../../common/log/log.ts';
import { SCANS_DEAD_LETTERS } from '../../../common/log/topics.ts';
import { withoutVisitorData } from './scan-fields.ts';

/** A record that cannot be decoded. */
export interface DeadLetter {
  readonly record: LogRecord;
  /** A sentence for readers of the dead letters. */
  readonly reason: string;
}

/** Publishes records of scans that cannot be decoded as dead letters. */
export interface DeadLetterPublisher {
  /** Publishes those of a poll, without those that it has published before. */
  publish(letters: readonly DeadLetter[]): Promise<void>;
  /** Called once their poll is recorded, so that it is not delivered again. */
  recorded(letters: readonly DeadLetter[]): void;
}

export function deadLetterPublisher(log: Log, logger: Logger): DeadLetterPublisher {
  /** Those of polls that could not be recorded: the polls are delivered again, and the dead letters are not. */
  const published = new Set<string>();

  return {
    async publish(letters) {
      const unpublished = letters.filter(({ record }) => !published.has(positionOf(record)));
      if (unpublished.length === 0) return;
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
    },
    recorded(letters) {
      for (const { record } of letters) published.delete(positionOf(record));
    },
  };
}

function positionOf({ partition, offset }: LogRecord): string {
  return `${partition} ${offset}`;
}

import type { Logger } from 'pino';
import type { KafkaSecurity } from './kafka-variables.ts';
import type { Log } from './log.ts';
import { openPostgresLog } from './postgres.ts';
import { PREFIX, prefixed } from './prefixed.ts';
import { traced } from './traced.ts';

export interface LogOptions {
  /** `host:port` of brokers; empty if there is no Kafka. */
  readonly kafkaBrokers: readonly string[];
  /** TLS and authentication; unset: cleartext without authentication. */
  readonly kafkaSecurity?: KafkaSecurity;
  /** The start of the names of topics and groups in Kafka; default: `signpost.`. */
  readonly kafkaPrefix?: string;
  /** The database of the log if there is no Kafka. */
  readonly databaseUrl: string;
  /** The client name that servers see. */
  readonly clientId: string;
  readonly logger: Logger;
}

/**
 * Opens the log: in Kafka if there are brokers, else in Postgres. Does not wait for the log, which may be unavailable.
 */
export async function openLog(options: LogOptions): Promise<Log> {
  const { kafkaBrokers, kafkaSecurity = {}, kafkaPrefix = PREFIX, databaseUrl, clientId, logger } = options;
  if (kafkaBrokers.length === 0) return traced(openPostgresLog({ url: databaseUrl, clientId, logger }), 'postgresql');
  // Without Kafka, its client would only take memory: 7 MB of each process.
  const { openKafkaLog } = await import('./kafka.ts');
  const followers = `${kafkaPrefix}follower`;
  const log = openKafkaLog({ brokers: kafkaBrokers, security: kafkaSecurity, followers, clientId, logger });
  return traced(prefixed(log, kafkaPrefix), 'kafka');
}

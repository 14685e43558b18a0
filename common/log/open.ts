import type { Logger } from 'pino';
import { openKafkaLog } from './kafka.ts';
import type { KafkaSecurity } from './kafka-variables.ts';
import type { Log } from './log.ts';
import { openPostgresLog } from './postgres.ts';
import { traced } from './traced.ts';

export interface LogOptions {
  /** `host:port` of brokers; empty if there is no Kafka. */
  readonly kafkaBrokers: readonly string[];
  /** TLS and authentication; unset: cleartext without authentication. */
  readonly kafkaSecurity?: KafkaSecurity;
  /** The database of the log if there is no Kafka. */
  readonly databaseUrl: string;
  /** The client name that servers see. */
  readonly clientId: string;
  readonly logger: Logger;
}

/** Opens the log: in Kafka if there are brokers, else in Postgres. Returns at once, even if the log is unavailable. */
export function openLog({ kafkaBrokers, kafkaSecurity = {}, databaseUrl, clientId, logger }: LogOptions): Log {
  return traced(
    kafkaBrokers.length > 0
      ? openKafkaLog({ brokers: kafkaBrokers, security: kafkaSecurity, clientId, logger })
      : openPostgresLog({ url: databaseUrl, clientId, logger }),
  );
}

import type { Logger } from 'pino';
import { openKafkaLog } from './kafka.ts';
import type { KafkaSecurity } from './kafka-variables.ts';
import type { Log } from './log.ts';
import { openPostgresLog } from './postgres.ts';
import { traced } from './traced.ts';

export interface LogOptions {
  /** `host:port` of brokers; empty where there is no Kafka. */
  readonly kafkaBrokers: readonly string[];
  /** How to connect to them and log in; unset: in cleartext, as nobody in particular. */
  readonly kafkaSecurity?: KafkaSecurity;
  /** The database that holds the log where there is no Kafka. */
  readonly databaseUrl: string;
  /** What servers see as the name of this client. */
  readonly clientId: string;
  readonly logger: Logger;
}

/** Opens the log: Kafka where there are brokers, else the one in Postgres. Returns at once, whatever is away. */
export function openLog({ kafkaBrokers, kafkaSecurity = {}, databaseUrl, clientId, logger }: LogOptions): Log {
  return traced(
    kafkaBrokers.length > 0
      ? openKafkaLog({ brokers: kafkaBrokers, security: kafkaSecurity, clientId, logger })
      : openPostgresLog({ url: databaseUrl, clientId, logger }),
  );
}

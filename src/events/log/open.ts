import type { Logger } from 'pino';
import { openKafkaLog } from './kafka.ts';
import type { Log } from './log.ts';
import { openPostgresLog } from './postgres.ts';
import { traced } from './traced.ts';

export interface LogOptions {
  /** `host:port` of brokers; empty where there is no Kafka. */
  readonly kafkaBrokers: readonly string[];
  /** The database that holds the log where there is no Kafka. */
  readonly databaseUrl: string;
  /** What servers see as the name of this client. */
  readonly clientId: string;
  readonly logger: Logger;
}

/** Opens the log: Kafka where there are brokers, else the one in Postgres. Returns at once, whatever is away. */
export function openLog({ kafkaBrokers, databaseUrl, clientId, logger }: LogOptions): Log {
  return traced(
    kafkaBrokers.length > 0
      ? openKafkaLog({ brokers: kafkaBrokers, clientId, logger })
      : openPostgresLog({ url: databaseUrl, clientId, logger }),
  );
}

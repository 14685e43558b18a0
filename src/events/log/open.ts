import type { Logger } from 'pino';
import { openKafkaLog } from './kafka.ts';
import type { Log } from './log.ts';
import { openPostgresLog } from './postgres.ts';
import { traced } from './traced.ts';

/** Opens the log: Kafka where there are brokers, else the one in Postgres. Returns at once, whatever is away. */
export function openLog(options: {
  kafkaBrokers: readonly string[];
  databaseUrl: string;
  clientId: string;
  logger: Logger;
}): Log {
  const { kafkaBrokers, databaseUrl, clientId, logger } = options;
  return traced(
    kafkaBrokers.length > 0
      ? openKafkaLog({ brokers: kafkaBrokers, clientId, logger })
      : openPostgresLog({ url: databaseUrl, clientId, logger }),
  );
}

import { join } from 'node:path';
import { pino } from 'pino';
import { openLog } from '../../common/log/open.ts';
import { TOPICS } from '../../common/log/topics.ts';
import { type LocalPostgres, startPostgres } from '../../local/postgres.ts';
import { openDatabase } from '../../src/db/database.ts';
import { entities } from '../../src/entities.ts';

/** Starts a Postgres with the schema, and creates the topics that gateways publish to: in it, or in Kafka if it is given. */
export async function startScanDatabase(folder: string, kafkaBrokers: readonly string[] = []): Promise<LocalPostgres> {
  const postgres = await startPostgres({ folder: join(folder, 'postgres') });
  const database = await openDatabase(postgres.url, 2, entities);
  await database.migrate();
  await database.close();
  const logger = pino({ level: 'warn' });
  const log = await openLog({ kafkaBrokers: [...kafkaBrokers], databaseUrl: postgres.url, clientId: 'bench', logger });
  await log.ensureTopics(TOPICS);
  await log.close();
  return postgres;
}

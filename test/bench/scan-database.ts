import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { openLog } from '../../common/log/open.ts';
import { TOPICS } from '../../common/log/topics.ts';
import { type LocalPostgres, startPostgres } from '../../local/postgres.ts';
import { openDatabase } from '../../src/db/database.ts';
import { entities } from '../../src/entities.ts';

interface ScanDatabaseOptions {
  /** Where the folder is created. Default: the system's folder for temporary files. */
  readonly parent?: string;
  /** Where topics are created. Default: in Postgres. */
  readonly kafkaBrokers?: readonly string[];
}

/**
 * Starts a Postgres with the schema, in a new folder, and creates the topics that gateways publish to. Disposing
 * `running` stops it and removes the folder.
 */
export async function startScanDatabase(
  running: AsyncDisposableStack,
  { parent = tmpdir(), kafkaBrokers = [] }: ScanDatabaseOptions = {},
): Promise<{ readonly folder: string; readonly postgres: LocalPostgres }> {
  const folder = await mkdtemp(join(parent, 'signpost-bench-'));
  running.defer(() => rm(folder, { recursive: true, force: true }));
  const postgres = await startPostgres({ folder: join(folder, 'postgres') });
  running.defer(() => postgres.stop());
  const database = await openDatabase(postgres.url, 2, entities);
  await database.migrate();
  await database.close();
  const logger = pino({ level: 'warn' });
  const log = await openLog({ kafkaBrokers: [...kafkaBrokers], databaseUrl: postgres.url, clientId: 'bench', logger });
  await log.ensureTopics(TOPICS);
  await log.close();
  return { folder, postgres };
}

import { join } from 'node:path';
import { Client } from 'pg';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { type LocalPostgres, startPostgres } from './postgres.ts';
import type { Settings } from './settings.ts';

/** How long a Postgres of somebody else's may take to answer, in ms. */
const ANSWER_WITHIN_MS = 5_000;

/** The Postgres that `DATABASE_URL` names, for the core and the gateway alike; else one of our own in `DATA_DIR`. */
export async function useDatabase({ databaseUrl, dataDir }: Settings): Promise<LocalPostgres> {
  if (databaseUrl === undefined) return startPostgres({ folder: join(dataDir, 'postgres') });
  await expectAnswer(databaseUrl);
  return { url: databaseUrl, gatewayUrl: databaseUrl, stop: async () => undefined };
}

async function expectAnswer(url: string): Promise<void> {
  if (!URL.canParse(url))
    throw new OperatorError('DATABASE_URL must be an address: postgres://user:password@host:port/database.');
  const client = new Client({ connectionString: url, connectionTimeoutMillis: ANSWER_WITHIN_MS });
  try {
    await client.connect();
    await client.end();
  } catch (error) {
    const { code = 'no answer in time' } = error as { code?: string };
    throw new OperatorError(`Postgres at ${new URL(url).host} (DATABASE_URL) can't be used: ${code}.`, {
      cause: error,
    });
  }
}

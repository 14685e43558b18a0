import { join } from 'node:path';
import { connectionOptions } from '../common/postgres/connection-options.ts';
import { expectUsableUrl, hostsOf } from '../common/postgres/database-url.ts';
import { postgresProblem } from '../common/postgres/postgres-problem.ts';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { type LocalPostgres, startPostgres } from './postgres.ts';
import type { Settings } from './settings.ts';

/** The timeout for connecting to an external Postgres, in ms. */
const CONNECT_TIMEOUT_MS = 5_000;

/** The Postgres of `DATABASE_URL`, for core and gateway alike; else a local one in `DATA_DIR`. */
export async function startDatabase({ databaseUrl, dataDir }: Settings): Promise<LocalPostgres> {
  if (databaseUrl === undefined) return startPostgres({ folder: join(dataDir, 'postgres') });
  await expectReachable(databaseUrl);
  return {
    url: databaseUrl,
    gatewayUrl: databaseUrl,
    ended: () => new Promise(() => undefined),
    stop: async () => undefined,
  };
}

async function expectReachable(url: string): Promise<void> {
  expectUsableUrl(url);
  const options = connectionOptions(url);
  const client = new options.Client({ ...options, connectionTimeoutMillis: CONNECT_TIMEOUT_MS });
  try {
    await client.connect();
    await client.end();
  } catch (error) {
    const { message } = error as Error;
    const sentence =
      postgresProblem(error) ??
      `Postgres at ${hostsOf(url)} (DATABASE_URL) can't be used: ${message.replace(/\.?$/, '.')}`;
    throw new OperatorError(sentence, { cause: error });
  }
}

import pg from 'pg';
import type { Logger } from 'pino';
import { poolOptions } from '../../common/postgres/connection-options.ts';
import { logIdleErrors } from '../../common/postgres/idle-errors.ts';

/** Timeout for connecting and for each statement, in ms. */
const TIMEOUT_MS = 1_000;

/** Not sent as parameters of the connection, which PgBouncer refuses. */
const SETTINGS = `set statement_timeout = ${TIMEOUT_MS}; set default_transaction_read_only = on`;

/**
 * A pool of read-only connections. While Postgres is unavailable, connecting and each statement fail within a second.
 */
export function readOnlyPool(databaseUrl: string, connections: number, logger: Logger): pg.Pool {
  const pool = new pg.Pool({
    ...poolOptions(databaseUrl, SETTINGS),
    max: connections,
    connectionTimeoutMillis: TIMEOUT_MS,
    query_timeout: TIMEOUT_MS,
    application_name: 'signpost-gateway',
  });
  logIdleErrors(pool, logger);
  return pool;
}

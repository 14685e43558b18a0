import type { Pool, PoolClient } from 'pg';
import { breakOff, transaction, withConnection } from '../../common/postgres/sql.ts';

/** Postgres looks for a closed connection only if it is told to. */
const SNAPSHOT = `set transaction isolation level repeatable read, read only; set local client_connection_check_interval = '1s'`;

/**
 * Runs `read`, whose statements see one snapshot and run on one connection, one after the other. Ends with an error,
 * also in Postgres, when `signal` aborts: its statements may take as long as they need, but not after their caller has
 * gone.
 */
export function inSnapshot<Result>(
  pool: Pool,
  signal: AbortSignal | undefined,
  read: (tx: PoolClient) => Promise<Result>,
): Promise<Result> {
  return withConnection(pool, async (connection) => {
    const close = () => breakOff(connection, new Error('the caller has gone'));
    signal?.addEventListener('abort', close);
    try {
      signal?.throwIfAborted();
      return await transaction(connection, async (tx) => {
        await tx.query(SNAPSHOT);
        return await read(tx);
      });
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener('abort', close);
    }
  });
}

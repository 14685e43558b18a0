import type { Pool } from 'pg';
import { OperatorError } from '../../common/runtime/operator-error.ts';

/** How often it is checked: other clients of the pooler may take a session in between. */
const ATTEMPTS = 5;

/**
 * Fails with an `OperatorError` if a pooler between this process and Postgres lends sessions for one transaction at a time
 * (PgBouncer: `pool_mode=transaction` or `statement`). Locks that leaders hold, prepared statements and notifications belong
 * to sessions: the work of one core would be done twice. Two connections that are open at once share a session only then.
 */
export async function expectOwnSessions(pool: Pool): Promise<void> {
  const clients = [await pool.connect(), await pool.connect()];
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const sessions: number[] = [];
      for (const client of clients) {
        const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
        sessions.push(rows[0]?.pid ?? 0);
      }
      if (new Set(sessions).size === clients.length) continue;
      throw new OperatorError(
        'DATABASE_URL leads to a pooler that lends sessions for one transaction at a time, and cores need their own: ' +
          'set pool_mode=session in PgBouncer, or connect to Postgres directly.',
      );
    }
  } finally {
    for (const client of clients) client.release();
  }
}

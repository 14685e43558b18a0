import type { Pool, PoolClient } from 'pg';
import { withConnection } from '../../common/postgres/sql.ts';
import { OperatorError } from '../../common/runtime/operator-error.ts';

/** Number of checks: other clients of the pooler may take a session in between. */
const ATTEMPTS = 5;

/**
 * Fails with an `OperatorError` if a pooler between this process and Postgres lends sessions for one transaction at a
 * time (PgBouncer: `pool_mode=transaction` or `statement`). Locks that leaders hold, prepared statements and
 * notifications belong to sessions: the work of one core would be done twice. Two connections that are open at once
 * share a session only then.
 */
export async function expectOwnSessions(pool: Pool): Promise<void> {
  await withConnection(pool, (one) => withConnection(pool, (other) => expectTwoSessions(one.client, other.client)));
}

async function expectTwoSessions(one: PoolClient, other: PoolClient): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if ((await sessionOf(one)) !== (await sessionOf(other))) continue;
    throw new OperatorError(
      'DATABASE_URL points to a pooler that lends sessions for one transaction at a time, and cores need their own: ' +
        'set pool_mode=session in PgBouncer, or connect to Postgres directly.',
    );
  }
}

async function sessionOf(client: PoolClient): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  return rows[0]?.pid;
}

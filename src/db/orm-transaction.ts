import type { EntityManager, MikroORM } from '@mikro-orm/postgresql';
import type { PoolClient } from 'pg';
import type { CommitLimit } from '../../common/postgres/commit-limit.ts';
import { transaction } from '../../common/postgres/sql.ts';
import { poolOf } from './bound-connection.ts';

/**
 * Runs `work` in one transaction, as `transaction` does, with an entity manager of its own: what is left to write when
 * it returns is written before the commit.
 */
export async function ormTransaction<Result>(
  orm: MikroORM,
  work: (em: EntityManager, tx: PoolClient) => Promise<Result>,
  limit?: CommitLimit,
): Promise<Result> {
  const begun = async (tx: PoolClient) => {
    const em = entityManagerIn(orm, tx);
    const result = await work(em, tx);
    await em.flush();
    return result;
  };
  return transaction(await poolOf(orm.em.getConnection()), begun, limit);
}

/** An entity manager of its own that works in the transaction that `tx` has open; the caller flushes it. */
export function entityManagerIn(orm: MikroORM, tx: PoolClient): EntityManager {
  const em = orm.em.fork();
  em.setTransactionContext(tx);
  return em;
}

/** The connection that an entity manager's transaction runs on, for statements beside it. */
export function connectionOf(em: EntityManager): PoolClient {
  const tx = em.getTransactionContext<PoolClient>();
  if (!tx) throw new Error('This entity manager is in no transaction.');
  return tx;
}

import type { EntityManager, MikroORM } from '@mikro-orm/postgresql';
import type { PoolClient } from 'pg';
import type { CommitLimit } from '../../common/postgres/commit-limit.ts';
import { transaction, transactionWithin } from '../../common/postgres/sql.ts';
import { poolOf } from './bound-connection.ts';

/**
 * Runs `work` in one transaction, as `transaction` does, with a new entity manager, which is flushed before the commit.
 */
export async function ormTransaction<Result>(
  orm: MikroORM,
  work: (em: EntityManager, tx: PoolClient) => Promise<Result>,
  limit?: CommitLimit,
): Promise<Result> {
  return transaction(await poolOf(orm.em.getConnection()), flushed(orm, work), limit);
}

/** `ormTransaction` in at most `withinMs`, as `transactionWithin`. */
export async function ormTransactionWithin<Result>(
  orm: MikroORM,
  withinMs: number,
  work: (em: EntityManager, tx: PoolClient) => Promise<Result>,
  limit?: CommitLimit,
): Promise<Result> {
  return transactionWithin(await poolOf(orm.em.getConnection()), withinMs, flushed(orm, work), limit);
}

function flushed<Result>(orm: MikroORM, work: (em: EntityManager, tx: PoolClient) => Promise<Result>) {
  return async (tx: PoolClient) => {
    const em = entityManagerIn(orm, tx);
    const result = await work(em, tx);
    await em.flush();
    return result;
  };
}

/** A new entity manager in the open transaction of `tx`; the caller flushes it. */
export function entityManagerIn(orm: MikroORM, tx: PoolClient): EntityManager {
  const em = orm.em.fork();
  em.setTransactionContext(tx);
  return em;
}

/** The connection of an entity manager's transaction, for other statements in that transaction. */
export function connectionOf(em: EntityManager): PoolClient {
  const tx = em.getTransactionContext<PoolClient>();
  if (!tx) throw new Error('This entity manager is not in a transaction.');
  return tx;
}

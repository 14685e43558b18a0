import type { EntityManager, MikroORM } from '@mikro-orm/postgresql';
import {
  type CommitLimit,
  expectTimeLeft,
  type Remaining,
  remainingUntil,
} from '../../common/postgres/commit-limit.ts';

/**
 * Runs `work` in one transaction of an entity manager of its own, as `transaction` does on a connection. It asks Postgres
 * for the time at the beginning and at the end, and does not have it end the transaction: the ORM never gives a
 * connection back to the pool that was ended in a transaction.
 */
export function ormTransaction<Result>(
  orm: MikroORM,
  work: (em: EntityManager) => Promise<Result>,
  limit?: CommitLimit,
): Promise<Result> {
  return orm.em.fork().transactional(async (em) => {
    await expectInTime(em, limit);
    const result = await work(em);
    await em.flush();
    await expectInTime(em, limit);
    return result;
  });
}

async function expectInTime(em: EntityManager, limit: CommitLimit | undefined): Promise<void> {
  limit?.signal.throwIfAborted();
  if (limit?.commitBy === undefined) return;
  const rows: Remaining[] = await em.execute(remainingUntil(limit.commitBy));
  expectTimeLeft(rows[0]);
  limit.signal.throwIfAborted();
}

import type { EntityManager, MikroORM } from '@mikro-orm/postgresql';
import type { PoolClient } from 'pg';
import { promptQuery } from '../../common/postgres/sql.ts';
import { isLockTimeout } from '../../common/postgres/unavailable.ts';
import { ormTransactionWithin } from '../db/orm-transaction.ts';

/**
 * How long a step may take, in ms: a hundred times what it takes. For a Postgres that vanishes meanwhile: see
 * `PROMPT_MS`. Other jobs take the work over, but this one would keep its slot for a quarter of an hour, and a runner
 * that failed waits for it.
 */
const STEP_MS = 60_000;

/**
 * How long a step waits for a lock, in ms. Merging a label of very many codes locks it for a minute: steps that wait so
 * long would hold all slots of the workers, while the work of other accounts waits.
 */
const LOCK_MS = 2_000;

/**
 * Runs a step of a job in one transaction, with a new entity manager, which is flushed before the commit. `work`
 * returns whether there is more to do. If it does not get a lock in time, the job ends, and `scheduleStalled` gives the
 * work a new one, after the work of other accounts.
 */
export async function runStep(
  orm: MikroORM,
  work: (em: EntityManager, tx: PoolClient) => Promise<boolean>,
): Promise<boolean> {
  try {
    return await ormTransactionWithin(orm, STEP_MS, async (em, tx) => {
      await tx.query(promptQuery(`set local lock_timeout = ${LOCK_MS}`));
      return work(em, tx);
    });
  } catch (error) {
    if (isLockTimeout(error)) return false;
    throw error;
  }
}

/** Lets the rest of a step wait for locks as long as the step may take: its work is done, and would be lost. */
export async function waitForLocks(tx: PoolClient): Promise<void> {
  await tx.query(promptQuery('set local lock_timeout = 0'));
}

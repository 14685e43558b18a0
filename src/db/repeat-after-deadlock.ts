import { isDeadlock } from '../../common/postgres/unavailable.ts';

/**
 * Repeats work that Postgres rolls back because of a deadlock, unless `signal` is aborted. `attempts`: the maximum.
 * It must have no effects outside of its transaction.
 */
export async function repeatAfterDeadlock<Result>(
  attempts: number,
  work: () => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt === attempts || signal?.aborted || !isDeadlock(error)) throw error;
    }
  }
}

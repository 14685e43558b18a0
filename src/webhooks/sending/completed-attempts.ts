import type { Pool } from 'pg';
import type { Logger } from 'pino';
import type { Queryable } from '../../../common/postgres/sql.ts';
import { attemptsPerBudget, type BudgetKey, refundBudgets } from './attempt-budgets.ts';
import { disableAndAudit, type EndpointState, lockEndpointState, reasonToDisable } from './disable-policy.ts';
import type { LeasedEndpoint, LeasedEndpoints } from './leased-endpoints.ts';
import type { DeliveryResult, DueDelivery, EndpointResults, Queue } from './queue.ts';

/** Attempts recorded in one transaction, which takes 0.05 s. More may have completed while Postgres was unavailable. */
const MAX_RECORDED = 1_000;

interface CompletedAttempt {
  readonly endpoint: LeasedEndpoint;
  /** The URL that was called: the endpoint's may have changed since. */
  readonly url: string;
  readonly delivery: DueDelivery;
  readonly result: DeliveryResult;
  /** The budget that the attempt was charged to; undefined when the endpoint was not throttled. */
  readonly budget: BudgetKey | undefined;
}

/** Attempts that are completed and not recorded yet. */
export interface CompletedAttempts {
  add(attempt: CompletedAttempt): void;
  /**
   * Records the attempts that are completed now, disables endpoints that have failed for too long, and refunds
   * successful attempts. What could not be recorded is kept for the next call.
   */
  record(): Promise<void>;
}

export function completedAttempts({
  pool,
  queue,
  leased,
  logger,
}: {
  readonly pool: Pool;
  readonly queue: Queue;
  readonly leased: LeasedEndpoints;
  readonly logger: Logger;
}): CompletedAttempts {
  const unrecorded: CompletedAttempt[] = [];

  async function recordNext(count: number): Promise<void> {
    const completed = unrecorded.slice(0, count);
    const { changed, tests } = await queue.record(byEndpoint(completed));
    unrecorded.splice(0, completed.length);
    for (const { endpoint, delivery, result } of completed) {
      endpoint.fetched.delete(delivery.id);
      if (result.newStatus !== 'succeeded') endpoint.unrecordedFailures--;
      endpoint.lastActiveAt = performance.now();
    }
    for (const row of changed) if (leased.has(row.id)) leased.put(row);
    const succeeded = completed.filter(({ result }) => result.newStatus === 'succeeded');
    const refunds = attemptsPerBudget(succeeded.flatMap(({ budget }) => budget ?? []));
    if (refunds.length > 0) await refundBudgets(pool, refunds);
    await disableFailing(completed, tests);
  }

  /** `tests`: the deliveries of test events that `completed` has changed. */
  async function disableFailing(completed: readonly CompletedAttempt[], tests: ReadonlySet<string>): Promise<void> {
    for (const [{ row }, attempts] of Map.groupBy(completed, ({ endpoint }) => endpoint)) {
      const reasonFor = (current: EndpointState) =>
        reasonToDisable(
          current,
          attempts.flatMap(({ url, delivery, result }) =>
            url === current.url && (current.verified_at !== null || tests.has(delivery.id)) ? [result] : [],
          ),
        );
      const reason = reasonFor(row);
      if (reason === undefined) continue;
      // It may have been disabled and enabled again since `row` was read.
      const applies = async (tx: Queryable) => {
        const current = await lockEndpointState(tx, row.id);
        return current !== undefined && reasonFor(current) === reason;
      };
      if (await disableAndAudit(pool, row, reason, logger, applies)) leased.remove(row.id);
    }
  }

  return {
    add: (attempt) => void unrecorded.push(attempt),
    async record() {
      for (let left = unrecorded.length; left > 0; left -= MAX_RECORDED) await recordNext(Math.min(left, MAX_RECORDED));
    },
  };
}

/** The results for each endpoint and URL. */
function byEndpoint(completed: readonly CompletedAttempt[]): EndpointResults[] {
  const byUrl = Map.groupBy(completed, ({ endpoint, url }) => `${endpoint.row.id} ${url}`);
  return [...byUrl.values()].flatMap((attempts) =>
    attempts
      .slice(0, 1)
      .map(({ endpoint, url }) => ({ id: endpoint.row.id, url, results: attempts.map(({ result }) => result) })),
  );
}

import type { HandlerContext } from '@connectrpc/connect';
import { PostgresUnavailable } from '../../common/postgres/unavailable.ts';
import { fairQueue } from '../../common/queues/fair-queue.ts';
import { callerKey } from './caller.ts';

/**
 * Connections to Postgres that the changes of an account have at a time. Changes of the same row wait for each other: while 200
 * calls of one account changed one code, they had all connections, and a call of another account took 1.1 s, now 0.01.
 */
const CONNECTIONS = 4;

/** How long a change waits for its turn, in ms: as long as for a connection, so that it fails no later without Postgres. */
const MAX_WAIT_MS = 3_000;

const queue = fairQueue({
  concurrency: Number.POSITIVE_INFINITY,
  concurrencyPerCaller: CONNECTIONS,
  maxWaiting: 4_000,
  items: 'changes',
  timeout: {
    ms: MAX_WAIT_MS,
    error: () => new PostgresUnavailable(`No connection was available for the account within ${MAX_WAIT_MS} ms.`),
  },
});

/**
 * Runs `work`, which takes a connection, when it is the turn of the account that the call acts for; at once without an account.
 * The turn ends with the work, or earlier when that calls `end`.
 */
export function inTurn<Result>(
  { values, signal }: HandlerContext,
  work: (end: () => void) => Promise<Result>,
): Promise<Result> {
  const caller = values.get(callerKey);
  const account = caller.kind === 'anyone' ? undefined : caller.account;
  if (!account) return work(() => undefined);
  return new Promise((resolve, reject) => {
    const turn = () => new Promise<void>((end) => void work(end).then(resolve, reject).finally(end));
    queue(account.id, signal, turn).catch(reject);
  });
}

import type { HandlerContext } from '@connectrpc/connect';
import { PostgresUnavailable } from '../../common/postgres/unavailable.ts';
import { fairQueue } from '../../common/queues/fair-queue.ts';
import { CONNECT_TIMEOUT_MS } from '../db/database.ts';
import { callerKey } from './caller.ts';

/**
 * Connections to Postgres that the changes of an account have at a time. Changes of the same row wait for each other:
 * while 200 calls of one account changed one code, they had all connections, and a call of another account took 1.1 s,
 * now 0.01.
 */
const CONNECTIONS = 4;

const queue = fairQueue({
  concurrency: Number.POSITIVE_INFINITY,
  concurrencyPerCaller: CONNECTIONS,
  maxWaiting: 4_000,
  items: 'changes',
  // As long as for a connection, so that no change fails later without Postgres.
  timeout: {
    ms: CONNECT_TIMEOUT_MS,
    error: () =>
      new PostgresUnavailable(`No connection was available for the account within ${CONNECT_TIMEOUT_MS} ms.`),
  },
});

/**
 * Runs `work`, which takes a connection, when it is the turn of the account that the call acts for; at once without an
 * account. The turn ends with the work, or earlier when that calls `endTurn`.
 */
export function inAccountQueue<Result>(
  { values, signal }: HandlerContext,
  work: (endTurn: () => void) => Promise<Result>,
): Promise<Result> {
  const caller = values.get(callerKey);
  const account = caller.kind === 'anyone' ? undefined : caller.account;
  return account ? queue(account.id, signal, work) : work(() => undefined);
}

import { ConnectError, type HandlerContext } from '@connectrpc/connect';
import type { EntityManager, MikroORM } from '@mikro-orm/postgresql';
import type { Pool, PoolClient } from 'pg';
import { failure } from '../../common/contract/errors.ts';
import { METADATA } from '../../common/contract/metadata.ts';
import type { CommitLimit } from '../../common/postgres/commit-limit.ts';
import { type Connection, transaction } from '../../common/postgres/sql.ts';
import { ormTransaction } from '../db/orm-transaction.ts';
import { repeatAfterDeadlock } from '../db/repeat-after-deadlock.ts';
import { inAccountQueue } from './account-queue.ts';

/** Milliseconds since 1970 that a number represents exactly. */
const TIME = /^\d{1,15}$/;

/** Maximum attempts of a transaction that deadlocks. */
const ATTEMPTS = 3;

/** How long a call may commit changes: while its caller is connected, and until its `signpost-commit-by`. */
export function commitLimitOf({ requestHeader, signal }: HandlerContext): CommitLimit {
  return { signal, commitBy: commitByIn(requestHeader) };
}

/**
 * Runs the transaction of a call; it commits within the call's commit limit or not at all. Transactions lock in an
 * order in which they hardly ever deadlock; one that still does is repeated, so `work` must have no effects outside of
 * it. Transactions of an account queue for connections.
 */
export function transactionOf<Result>(
  context: HandlerContext,
  on: Pool | Connection,
  work: (tx: PoolClient) => Promise<Result>,
): Promise<Result> {
  const run = () => repeatAfterDeadlock(ATTEMPTS, () => transaction(on, work, commitLimitOf(context)), context.signal);
  return 'client' in on ? run() : inAccountQueue(context, run);
}

/** The same with a new entity manager. */
export function ormTransactionOf<Result>(
  context: HandlerContext,
  orm: MikroORM,
  work: (em: EntityManager, tx: PoolClient) => Promise<Result>,
): Promise<Result> {
  const run = () =>
    repeatAfterDeadlock(ATTEMPTS, () => ormTransaction(orm, work, commitLimitOf(context)), context.signal);
  return inAccountQueue(context, run);
}

/** The header `signpost-commit-by`, in ms since 1970 by Postgres's clock, or the failure of a malformed one. */
export function readCommitBy(headers: Headers): number | undefined | ConnectError {
  const value = headers.get(METADATA.commitBy);
  if (value === null) return undefined;
  return TIME.test(value)
    ? Number(value)
    : failure('INVALID_FIELD', 'signpost-commit-by: must be milliseconds since 1970.');
}

function commitByIn(headers: Headers): number | undefined {
  const read = readCommitBy(headers);
  if (read instanceof ConnectError) throw read;
  return read;
}

import type { HandlerContext } from '@connectrpc/connect';
import type { EntityManager, MikroORM } from '@mikro-orm/postgresql';
import type { Pool, PoolClient } from 'pg';
import { failure } from '../../common/contract/errors.ts';
import type { CommitLimit } from '../../common/postgres/commit-limit.ts';
import { type Connection, transaction } from '../../common/postgres/sql.ts';
import { ormTransaction } from '../db/orm-transaction.ts';

/** Milliseconds since 1970, exact as a number. */
const TIME = /^\d{1,15}$/;

/** Until when a call may change something: while its caller is there, and until the `signpost-commit-by` that it names. */
export function commitLimitOf({ requestHeader, signal }: HandlerContext): CommitLimit {
  return { signal, commitBy: commitByIn(requestHeader) };
}

/** Runs the transaction of a call that changes something, which commits in time or not at all. */
export function transactionOf<Result>(
  context: HandlerContext,
  on: Pool | Connection,
  work: (tx: PoolClient) => Promise<Result>,
): Promise<Result> {
  return transaction(on, work, commitLimitOf(context));
}

/** The same with an entity manager of its own. */
export function ormTransactionOf<Result>(
  context: HandlerContext,
  orm: MikroORM,
  work: (em: EntityManager, tx: PoolClient) => Promise<Result>,
): Promise<Result> {
  return ormTransaction(orm, work, commitLimitOf(context));
}

/** What a caller names as `signpost-commit-by`, in ms since 1970 by Postgres's clock. */
export function commitByIn(headers: Headers): number | undefined {
  const named = headers.get('signpost-commit-by');
  if (named === null) return undefined;
  if (!TIME.test(named)) throw failure('INVALID_FIELD', 'signpost-commit-by: must be milliseconds since 1970.');
  return Number(named);
}

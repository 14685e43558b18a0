import { failure } from '../contract/errors.ts';

/** The deadline for committing the transaction of a call. */
export interface CommitLimit {
  /** Aborts when the caller has disconnected or stopped waiting: nothing is committed from then on. */
  readonly signal: AbortSignal;
  /** When the caller stops waiting, in whole ms since 1970 by `CLOCK_MS`. Undefined if the caller did not say. */
  readonly commitBy: number | undefined;
}

/**
 * The clock of the Postgres that all cores share, in ms since 1970: the same for every core, and correct even in a core
 * that was suspended for a while. `clock_timestamp()` advances while a statement waits for a row lock.
 */
export const CLOCK_MS = '(extract(epoch from clock_timestamp()) * 1000)::bigint';

/** The maximum of Postgres's `transaction_timeout`, in ms. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/**
 * Removes a timeout that an operator may have set for all transactions: a running timer is not restarted by a new
 * value.
 */
export const NO_TIMEOUT = 'set local transaction_timeout = 0';

/** The result of `endAt`. */
export interface Remaining {
  readonly remaining: string;
}

/**
 * A query that makes Postgres abort the transaction, which must have no timeout yet, at `commitBy`, or in `withinMs` if
 * that is sooner, and returns the time until `commitBy` in ms. Postgres uses its own clock, so the latency of this
 * query does not matter. Both are part of its text: it is sent together with others, for which Postgres takes no
 * parameters.
 */
export function endAt(commitBy: number, withinMs = MAX_TIMEOUT_MS): string {
  return `select set_config('transaction_timeout', greatest(0, least(remaining, ${withinMs}))::text, true), remaining
          from (select ${commitBy} - ${CLOCK_MS} as remaining) as clock`;
}

/** Fails with TOO_LATE if no time remains. */
export function expectTimeLeft(row: Remaining | undefined): void {
  if (!(Number(row?.remaining) > 0)) throw tooLate();
}

/** The error of a call that has changed nothing because its caller has stopped waiting. */
export function tooLate() {
  return failure('TOO_LATE', 'The call arrived too late and has changed nothing; try again.');
}

import { failure } from '../contract/errors.ts';

/** Until when a transaction may commit that does what a call asks for. */
export interface CommitLimit {
  /** Aborts when the caller has gone or has stopped waiting: nothing is committed from then on. */
  readonly signal: AbortSignal;
  /** When the caller stops waiting, in whole ms since 1970 by `CLOCK_MS`. Undefined: the caller has not said. */
  readonly commitBy: number | undefined;
}

/**
 * The clock of the one Postgres that all cores share, in ms since 1970: the same for every core, and still right in a
 * core that was stopped for a while. It is read again where a row had to be waited for.
 */
export const CLOCK_MS = '(extract(epoch from clock_timestamp()) * 1000)::bigint';

/** The longest that Postgres takes for a `transaction_timeout`, in ms. */
const LONGEST_MS = 2 ** 31 - 1;

/** Takes the timeout off a transaction that an operator may have given to all: one that runs is not set anew. */
export const NO_TIMEOUT = 'set local transaction_timeout = 0';

/** What `endAt` answers. */
export interface Remaining {
  readonly remaining: string;
}

/**
 * Has Postgres end a transaction, which has no timeout yet, at `commitBy`, and tells how long that is from now, in ms.
 * Postgres reads its own clock for it, so it does not matter how long this takes to get there.
 */
export function endAt(commitBy: number): string {
  return `select set_config('transaction_timeout', greatest(0, least(remaining, ${LONGEST_MS}))::text, true), remaining
          from (select ${commitBy} - ${CLOCK_MS} as remaining) as clock`;
}

/** Fails with TOO_LATE when no time remains. */
export function expectTime(told: Remaining | undefined): void {
  if (!(Number(told?.remaining) > 0)) throw tooLate();
}

/** The error of a call that changes nothing because its caller has stopped waiting. */
export function tooLate() {
  return failure('TOO_LATE', 'The call arrived too late and has changed nothing; try again.');
}

import type { Pool, QueryResultRow } from 'pg';
import { CLOCK_MS, type CommitLimit } from '../../common/postgres/commit-limit.ts';
import { PROMPT_MS, run, type Statement, withConnection } from '../../common/postgres/sql.ts';
import { isRolledBack } from '../../common/postgres/unavailable.ts';
import { grouped } from '../../common/queues/grouped.ts';
import type { Rate } from '../access/caller.ts';
import { arrayParameters, arraysOf, type Column, listed } from '../db/columns.ts';
import { type NewOutboxRow, NEW_COLUMNS as OUTBOX_COLUMNS } from '../events/outbox.ts';
import type { CodeRow } from './code-row.ts';

/** With one statement at a time, the calls that arrive while its commit waits for the disk are the next group. */
const GROUPS = { concurrency: 1, maxSize: 32, maxWaiting: 1_000, items: 'codes' };

/** A call that has less time left to commit is executed by itself, as its group would have to end with it, in ms. */
const MIN_TIME_LEFT_MS = 1_000;

/** A write of one code, with everything that commits with it. */
export interface CodeWrite {
  readonly row: CodeRow;
  readonly outbox: readonly NewOutboxRow[];
  /** A group has at most one write of each. */
  readonly onceInGroup: string;
  readonly signal: AbortSignal;
  /** Postgres's time by which the transaction must have ended, in ms since 1970. */
  readonly commitBy: number;
}

const COMMIT_BY: Column = { name: 'commit_by', type: 'bigint', nullable: false };

/** The columns of the calls of a group, whose writes have `columns`. */
const callColumns = (columns: readonly Column[]) => [...columns, COMMIT_BY];

/**
 * A query that returns the calls of a group, with `time_left`, in ms. Its first parameters are arrays of the columns of
 * the calls: `columns`, those of their writes, and `commit_by`.
 */
export const ASKED = (columns: readonly Column[]) => `
  select *, commit_by - ${CLOCK_MS} as time_left
  from unnest(${arrayParameters(callColumns(columns))}) as calls (${listed(callColumns(columns))})`;

/** A condition on `asked`, the calls that `ASKED` selects: the call may join a group. */
export const HAS_TIME = `time_left > ${MIN_TIME_LEFT_MS}`;

/**
 * A query that makes Postgres end the transaction when the first call in `asked` that has time left must have ended.
 */
export const ENDING = `
  select set_config('transaction_timeout', '0', true),
         set_config('transaction_timeout', coalesce(min(time_left), 0)::text, true)
  from asked where ${HAS_TIME}`;

const ANNOUNCED_COLUMNS = [{ name: 'code_id', type: 'uuid', nullable: false }, ...OUTBOX_COLUMNS];

/**
 * Inserts the outbox rows of the codes whose ids a query selects; their parameters follow those of `ASKED(columns)`.
 */
export const ANNOUNCE = (columns: readonly Column[], ids: string) => `
  insert into outbox (${listed(OUTBOX_COLUMNS)})
  select ${listed(OUTBOX_COLUMNS)}
  from unnest(${arrayParameters(ANNOUNCED_COLUMNS, callColumns(columns).length + 1)})
    as records (${listed(ANNOUNCED_COLUMNS)})
  where code_id in (${ids})`;

/** How long a call that was admitted at `rate.clock` may take: the core gives up a statement after `PROMPT_MS`. */
export function limitInGroup({ signal, commitBy = Number.POSITIVE_INFINITY }: CommitLimit, rate: Rate) {
  return { signal, commitBy: Math.min(commitBy, Number(rate.clock) + PROMPT_MS) };
}

/**
 * Returns a function that writes a code together with those of concurrent calls, by a statement that is a transaction
 * of its own, and resolves to whether it did: `statement` returns the ids of the codes that it has written. Its
 * parameters are those of `ASKED`, the columns of `askedOf` each write, and then those of `ANNOUNCE`.
 */
export function writeInGroups<Write extends CodeWrite>(
  pool: Pool,
  statement: Statement<QueryResultRow & { readonly id: string }>,
  columns: readonly Column[],
  askedOf: (write: Write) => object,
): (write: Write) => Promise<boolean> {
  return grouped<Write, boolean>({
    ...GROUPS,
    keyOf: ({ onceInGroup }) => onceInGroup,
    async work(writes) {
      try {
        const written = await withConnection(pool, async ({ client }) => {
          // Checked when a connection is available, as for a transaction of its own.
          const waiting = writes.filter(({ signal }) => !signal.aborted);
          if (waiting.length === 0) return [];
          const asked = waiting.map((write) => ({ ...askedOf(write), commit_by: write.commitBy }));
          const announced = waiting.flatMap(({ row, outbox }) =>
            outbox.map((record) => ({ code_id: row.id, ...record })),
          );
          return run(client, statement, [
            ...arraysOf(callColumns(columns), asked),
            ...arraysOf(ANNOUNCED_COLUMNS, announced),
          ]);
        });
        const ids = new Set(written.map(({ id }) => id));
        return writes.map(({ row }) => ids.has(row.id));
      } catch (error) {
        // One call may have caused that.
        if (isRolledBack(error)) return writes.map(() => false);
        throw error;
      }
    },
  });
}

import type { PoolClient } from 'pg';
import { run, type Statement, statement } from '../../common/postgres/sql.ts';

/**
 * How long ago the job of unfinished work must have been taken before the work gets a new one if no process does it,
 * and how often such work is looked for, in ms. Short, as the request that created the work may be waiting for it.
 */
export const STALLED_MS = 2_000;
/** Longest wait before a failed job is retried, in ms: the library would wait for hours. */
const MAX_RETRY_WAIT_MS = 10_000;
/** The lowest priority of a job; as much unfinished work of its account is counted at most. */
const MAX_PRIORITY = 1_000;

/**
 * A kind of work that continues in the background, one transaction after another, until it is completed. Each piece of
 * work is a row of a table with `id`, `account_id` and `completed_at`, which a step locks.
 */
export interface Task {
  /** The library's name for its jobs, whose keys are the ids of the rows. */
  readonly name: string;
  /** Takes the id of a row. */
  readonly schedule: Statement<never>;
  /** A query that schedules all its work that is unfinished, though no process does it. */
  readonly scheduleStalled: string;
}

/**
 * Defines a task. `property`: the property of a job's payload that contains the id. The table needs an index of the
 * rows with `completed_at is null` by account; the other indexes are accounts_pkey and the library's unique index on
 * the keys of jobs.
 */
export function taskOf({ name, table, property }: { name: string; table: string; property: string }): Task {
  return {
    name,
    /**
     * Adds the job, or replaces it if it has not begun. Jobs with a smaller number as priority come first, and of those
     * with the same number the oldest: the first work of an account does not wait for the hundredth of another one.
     */
    schedule: statement(
      `${table}_schedule`,
      `select graphile_worker.add_job(
         '${name}', json_build_object('${property}', $1::text), job_key := $1::text,
         priority := (select count(*) from (
           select from ${table} w join ${table} other on other.account_id = w.account_id and other.completed_at is null
           where w.id = $1::text::uuid limit ${MAX_PRIORITY}
         ) as unfinished)::integer)`,
    ),
    /**
     * The process that works on a row holds its lock nearly all the time. If the row is found unlocked between two
     * steps, it gets a second job, which ends when it finds the row locked: waiting for the lock, such jobs took all
     * places of a process whose steps were slow. A job that has not been taken keeps its place in the queue; a new one
     * has the priority that `schedule` would give it. The parts are materialized and look up rows by id, whatever the
     * statistics are: usually no work is unfinished.
     */
    scheduleStalled: `
      with unfinished as materialized (
        select id, account_id, least(count(*) over (partition by account_id), ${MAX_PRIORITY})::integer as priority
        from ${table} where completed_at is null
      ), stalled as materialized (
        select u.id, u.priority
        from unfinished u join accounts a on a.id = u.account_id and a.closed_at is null
        where not exists (
          select from graphile_worker.jobs j
          where j.key = u.id::text
            and case when j.locked_at is null then j.run_at < now() + ${MAX_RETRY_WAIT_MS} * interval '1 ms'
                     else j.locked_at > now() - ${STALLED_MS} * interval '1 ms' end
          offset 0)
      ), locked as materialized (
        select s.id, s.priority
        from stalled s cross join lateral (
          select from ${table} where id = s.id and completed_at is null for update skip locked
        ) w
      )
      select graphile_worker.add_job('${name}', json_build_object('${property}', id), job_key := id::text,
                                     job_key_mode := 'preserve_run_at', priority := priority)
      from locked`,
  };
}

/** Schedules work for the background workers, from the transaction's commit on. `id`: UUID of its row. */
export async function schedule(tx: PoolClient, task: Task, id: string): Promise<void> {
  await run(tx, task.schedule, [id]);
}

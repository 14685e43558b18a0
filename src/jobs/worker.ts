import { type EventEmitter, once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Logger as JobLogger, type Runner, run as runJobs } from 'graphile-worker';
import pg from 'pg';
import type { Logger } from 'pino';
import { poolOptions } from '../../common/postgres/connection-options.ts';
import { logIdleErrors } from '../../common/postgres/idle-errors.ts';
import { KEEP_ALIVE, PROMPT_MS, promptStatement, run, statement } from '../../common/postgres/sql.ts';
import { isQueryTimeout } from '../../common/postgres/unavailable.ts';
import { pause } from '../../common/runtime/pause.ts';
import { hourly } from '../../common/runtime/periodically.ts';
import { repeatUntilStopped } from '../../common/runtime/repeat-until-stopped.ts';
import { throttledFailures } from '../../common/runtime/throttled-report.ts';
import type { Database } from '../db/database.ts';
import { STALLED_MS, type Task } from './task.ts';

const RETRY_MS = 1_000;

/** How often each job slot of the library polls, in ms. Only retried jobs wait for it, as new ones are notified. */
const POLL_MS = 10_000;

/** Jobs that a process works on concurrently. */
const CONCURRENCY = 4;

/** Connections of the library, in addition to those of the tasks. */
const CONNECTIONS = 3;

/** What the library warns of at each start, though jobs do their work on connections of the tasks. */
const FEW_CONNECTIONS = /^WARNING: having maxPoolSize/;

/**
 * graphile-worker does not wait until Postgres knows that a job has succeeded or failed. Without a delay, it drops the
 * promise of that statement, and when Postgres dies during a job its rejection would end the process. With one, even of
 * 0 ms, it catches the failure and ends the runner, which is then restarted.
 */
const REPORTED_FAILURES = { worker: { completeJobBatchDelay: 0, failJobBatchDelay: 0 } };

/** Events of the library after which it only waits until it has reported how its jobs ended. */
const JOBS_ENDED = ['pool:gracefulShutdown:complete', 'pool:forcefulShutdown:complete', 'pool:forcefulShutdown:error'];

/**
 * How long it may take for that, in ms. A job whose end is not reported has nothing left to do when it is done again.
 */
const REPORTS_MS = 2_000;

/**
 * The jobs of processes that died: when their work gets a new job, the library takes their key and their further
 * attempts, and leaves them locked. Scans all jobs: there is one for each unfinished work.
 */
const deleteAbandoned = statement(
  'jobs_delete_abandoned',
  `delete from graphile_worker._private_jobs
   where key is null and attempts >= max_attempts and coalesce(locked_at, run_at) < now() - interval '1 day'`,
);

/** A task, and its next step for the row with this UUID, in one transaction; false once there is nothing left to do. */
export interface RunnableTask {
  readonly task: Task;
  advance(id: string): Promise<boolean>;
}

/** The role that finishes what requests have begun. */
export interface Worker {
  /** Stops after the running steps. */
  stop(): Promise<void>;
}

/**
 * Runs the jobs of tasks, in any number of processes: a step is one transaction, and a second job on the same row ends.
 * The library keeps the job of a process that died locked for hours, so all unfinished work whose job was taken, but
 * which no process does, gets a new job.
 */
export function startWorker(options: {
  databaseUrl: string;
  database: Database;
  tasks: readonly RunnableTask[];
  logger: Logger;
}): Worker {
  const { tasks, logger } = options;
  const { pool } = options.database;
  let runner: Runner | undefined;
  const reportFailure = throttledFailures((fields) =>
    logger.warn(fields, 'the background worker failed; it restarts in a second'),
  );
  const reportNotScheduled = throttledFailures((fields) =>
    logger.warn(fields, 'stalled background work could not be scheduled; trying again'),
  );

  /** Rejects if it can't finish the work, so that the library retries the job. */
  async function finish({ advance }: RunnableTask, id: string, signal: AbortSignal): Promise<void> {
    while (await advance(id)) {
      if (signal.aborted) throw new Error('the core is stopping');
    }
  }

  async function work(signal: AbortSignal): Promise<void> {
    const jobPool = openJobPool(options.databaseUrl, logger);
    try {
      await workWith(jobPool, signal);
    } finally {
      // Not awaited: a runner that failed may not return its connections.
      jobPool.end().catch(() => undefined);
    }
    // A runner may also end without a failure.
    await pause(RETRY_MS, signal);
  }

  async function workWith(jobPool: pg.Pool, signal: AbortSignal): Promise<void> {
    runner = await runJobs({
      pgPool: jobPool,
      concurrency: CONCURRENCY,
      preset: REPORTED_FAILURES,
      pollInterval: POLL_MS,
      noHandleSignals: true,
      logger: jobLogger(logger),
      taskList: Object.fromEntries(
        tasks.map((each) => [each.task.name, (_payload, { job }) => finish(each, job.key ?? '', signal)]),
      ),
    });
    if (signal.aborted) await runner.stop();
    await ended(runner);
  }

  const working = repeatUntilStopped(work, {
    retryMs: RETRY_MS,
    onError: reportFailure,
    onStop: () => runner?.stop().catch(() => undefined),
  });

  const scheduleStalled = promptStatement(
    'jobs_schedule_stalled',
    // In subqueries, because `for update` is not allowed in a `union` itself.
    tasks.map(({ task }) => `select * from (${task.scheduleStalled}) as scheduled`).join(' union all '),
  );
  const stalledCheck = setInterval(() => {
    run(pool, scheduleStalled).catch(reportNotScheduled);
  }, STALLED_MS);

  const upkeep = hourly('deleting abandoned jobs', logger, async () => void (await run(pool, deleteAbandoned)));

  return {
    async stop() {
      clearInterval(stalledCheck);
      await working.stop();
      await upkeep.stop();
    },
  };
}

/**
 * Waits until a runner has ended. If a job ends after the report of another one has failed, the library miscounts the
 * reports and waits for them for ever.
 */
async function ended({ promise, events }: Runner): Promise<void> {
  const jobsEnded = Promise.race(JOBS_ENDED.map((event) => once(events as EventEmitter, event)));
  await Promise.race([promise, jobsEnded.then(() => sleep(REPORTS_MS, undefined, { ref: false }))]);
}

/**
 * The pool for the library's own statements. None takes long: there is a job for each unfinished work, and the
 * library's tables have been migrated with the others.
 */
export function openJobPool(databaseUrl: string, logger: Logger): pg.Pool {
  const timeouts = { connectionTimeoutMillis: PROMPT_MS, query_timeout: PROMPT_MS };
  const options = { max: CONNECTIONS, ...timeouts, ...KEEP_ALIVE, application_name: 'signpost-core' };
  const pool = new pg.Pool({ ...poolOptions(databaseUrl), ...options });
  logIdleErrors(pool, logger);
  // A connection in use reports its loss by the failing statement too. The library insists on this listener.
  pool.on('connect', (client) => client.on('error', () => undefined));
  pool.on('connect', closeOnTimeout);
  return pool;
}

/** Closes a connection whose statement has timed out, since the library would return it to the pool. */
function closeOnTimeout(client: pg.PoolClient): void {
  const query = client.query.bind(client) as (...args: unknown[]) => unknown;
  const closing = (...args: unknown[]) => {
    const answer = query(...args);
    // There is no promise if a callback is given, as by `pool.query`, which closes the connection itself.
    if (answer instanceof Promise) {
      answer.catch((error: unknown) => {
        if (isQueryTimeout(error)) client.end().catch(() => undefined);
      });
    }
    return answer;
  };
  client.query = closing as typeof client.query;
}

/**
 * The library logs every job at `info`, which is logged at `debug` here. Its `meta` contains payloads, which must not
 * be logged.
 */
function jobLogger(logger: Logger): JobLogger {
  return new JobLogger(() => (level, message) => {
    if (level === 'error') logger.error({ about: 'jobs' }, message);
    else if (level === 'warning' && !FEW_CONNECTIONS.test(message)) logger.warn({ about: 'jobs' }, message);
    else logger.debug({ about: 'jobs' }, message);
  });
}

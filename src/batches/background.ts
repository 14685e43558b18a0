import { setTimeout as sleep } from 'node:timers/promises';
import { Logger as JobLogger, type Runner, run as runJobs } from 'graphile-worker';
import type { PoolClient } from 'pg';
import type { Logger } from 'pino';
import { run, statement } from '../../common/postgres/sql.ts';
import type { Database } from '../db/database.ts';
import { advance } from './advance.ts';
import { isCompleted } from './batch-message.ts';

const RETRY_MS = 1_000;

/** How often each job slot of the library polls, in ms. Only retried jobs wait for it, as new ones are notified. */
const POLL_MS = 10_000;

/** Batches that a process works on concurrently. */
const CONCURRENCY = 4;

/**
 * graphile-worker does not wait until Postgres knows that a job has succeeded or failed. Without a delay, it drops the
 * promise of that statement, and when Postgres dies during a batch its rejection would end the process. With one, even of
 * 0 ms, it catches the failure and ends the runner, which is then restarted.
 */
const REPORTED_FAILURES = { worker: { completeJobBatchDelay: 0, failJobBatchDelay: 0 } };

/**
 * How long ago the job of an unfinished batch must have been taken before the batch gets a new one if no process works on
 * it, and how often such batches are looked for, in ms. Short, as the request that created the batch may be waiting for it.
 */
const STALLED_MS = 2_000;
/** Longest wait before a failed job is retried, in ms: the library would wait for hours. */
const MAX_RETRY_WAIT_MS = 10_000;

/** Adds the job of a batch, or replaces it if it has not begun. */
const schedule = statement(
  'batches_schedule',
  `select graphile_worker.add_job('batch_go_on', json_build_object('batchId', $1::text), job_key := $1::text)`,
);

/**
 * The process that works on a batch holds its lock nearly all the time, and two processes on one batch do no harm. A job
 * that has not been taken keeps its place in the queue. Indexes: batches_unfinished, accounts_pkey, and the library's
 * unique index on the keys of jobs.
 */
const scheduleStalled = statement(
  'batches_schedule_stalled',
  `select graphile_worker.add_job('batch_go_on', json_build_object('batchId', b.id), job_key := b.id::text,
                                  job_key_mode := 'preserve_run_at')
   from batches b join accounts a on a.id = b.account_id and a.closed_at is null
   where b.completed_at is null
     and not exists (
       select from graphile_worker.jobs j
       where j.key = b.id::text
         and case when j.locked_at is null then j.run_at < now() + ${MAX_RETRY_WAIT_MS} * interval '1 ms'
                  else j.locked_at > now() - ${STALLED_MS} * interval '1 ms' end)
   for update of b skip locked`,
);

/** Schedules the rest of the batch for the background workers, from the transaction's commit on. `batchId`: UUID. */
export async function scheduleBatch(tx: PoolClient, batchId: string): Promise<void> {
  await run(tx, schedule, [batchId]);
}

/** The role that finishes batches. */
export interface BatchWorker {
  /** Stops after the running step. */
  stop(): Promise<void>;
}

/**
 * Runs the jobs that finish batches, in any number of processes: a step of a batch is one transaction, and a second worker
 * continues after it. The library keeps the job of a process that died locked for hours, so every unfinished batch whose
 * job was taken, but which no process works on, gets a new job.
 */
export function startBatchWorker(options: {
  databaseUrl: string;
  database: Database;
  platformUrl: string;
  logger: Logger;
}): BatchWorker {
  const { platformUrl, logger } = options;
  const { orm, pool } = options.database;
  const stopping = new AbortController();
  let runner: Runner | undefined;

  /** Rejects if it can't finish the batch, so that the library retries the job. */
  async function finish(batchId: string): Promise<void> {
    for (;;) {
      const batch = await advance(orm, platformUrl, batchId);
      if (!batch || isCompleted(batch)) return;
      stopping.signal.throwIfAborted();
    }
  }

  async function work(): Promise<void> {
    runner = await runJobs({
      connectionString: options.databaseUrl,
      maxPoolSize: 3,
      concurrency: CONCURRENCY,
      preset: REPORTED_FAILURES,
      pollInterval: POLL_MS,
      noHandleSignals: true,
      logger: jobLogger(logger),
      taskList: { batch_go_on: (payload) => finish((payload as { batchId: string }).batchId) },
    });
    if (stopping.signal.aborted) await runner.stop();
    await runner.promise;
  }

  const running = (async () => {
    while (!stopping.signal.aborted) {
      try {
        await work();
      } catch (error) {
        logger.warn({ err: error }, 'the background worker of batches failed; it restarts in a second');
      }
      await sleep(RETRY_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  })();

  const stalledCheck = setInterval(() => {
    run(pool, scheduleStalled).catch((error: unknown) =>
      logger.warn({ err: error }, 'stalled batches could not be scheduled; trying again'),
    );
  }, STALLED_MS);

  return {
    async stop() {
      clearInterval(stalledCheck);
      stopping.abort(new Error('the core is stopping'));
      await runner?.stop().catch(() => undefined);
      await running;
    },
  };
}

/** The library logs every job at `info`, which is logged at `debug` here. Its `meta` contains payloads, which must not be logged. */
function jobLogger(logger: Logger): JobLogger {
  return new JobLogger(() => (level, message) => {
    if (level === 'error') logger.error({ about: 'jobs' }, message);
    else if (level === 'warning') logger.warn({ about: 'jobs' }, message);
    else logger.debug({ about: 'jobs' }, message);
  });
}

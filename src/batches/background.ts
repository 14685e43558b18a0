import { setTimeout as sleep } from 'node:timers/promises';
import { Logger as JobLogger, type Runner, run as runJobs } from 'graphile-worker';
import type { PoolClient } from 'pg';
import type { Logger } from 'pino';
import { run, statement } from '../../common/postgres/sql.ts';
import type { Database } from '../db/database.ts';
import { advance } from './advance.ts';
import { isCompleted } from './batch-message.ts';

const RETRY_MS = 1_000;

/** How often each job slot of the library polls, in ms: new jobs are notified, only those tried again wait for it. */
const POLL_MS = 10_000;

/** Batches that a process works on at once. */
const AT_ONCE = 4;

/**
 * graphile-worker does not wait until Postgres knows that a job has succeeded or failed. Without a delay, it drops the
 * promise of that statement, and when Postgres dies during a batch its rejection would end the process. With one, even of
 * 0 ms, it catches the failure and ends the runner, which is then started anew.
 */
const REPORTED_FAILURES = { worker: { completeJobBatchDelay: 0, failJobBatchDelay: 0 } };

/**
 * How long ago the job of an unfinished batch must have been taken before it gets a new one if nobody works on the batch,
 * and how often to look for such batches, in ms: the request that created the batch may be waiting for it.
 */
const STALLED_MS = 2_000;
/** How long a job that has failed may wait before it is tried again, in ms: the library lets it wait for hours. */
const LONGEST_RETRY_MS = 10_000;

/** Replaces the job of the same batch that has not begun. */
const schedule = statement(
  'batches_schedule',
  `select graphile_worker.add_job('batch_go_on', json_build_object('batchId', $1::text), job_key := $1::text)`,
);

/**
 * A batch that a process works on is locked except for moments, and two processes working on it do no harm. A job that has
 * not been taken keeps its turn. Indexes: batches_unfinished, accounts_pkey, and the
 * unique one of the library on the keys of jobs.
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
         and case when j.locked_at is null then j.run_at < now() + ${LONGEST_RETRY_MS} * interval '1 ms'
                  else j.locked_at > now() - ${STALLED_MS} * interval '1 ms' end)
   for update of b skip locked`,
);

/** Has the batch finished in the background, as soon as the transaction has committed. `batchId`: UUID. */
export async function finishSoon(tx: PoolClient, batchId: string): Promise<void> {
  await run(tx, schedule, [batchId]);
}

/** The role that finishes batches. */
export interface BatchWorker {
  /** Ends after the step in hand. */
  stop(): Promise<void>;
}

/**
 * Runs the jobs that finish batches. Any number of processes may: a step of a batch is one transaction, and whoever
 * comes second goes on behind it. The job of a process that died is locked for hours, so every batch whose job was
 * taken and that nobody works on gets a new one.
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

  /** A job that can't end its batch fails, so that its library tries it again. */
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
      concurrency: AT_ONCE,
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
        logger.warn({ err: error }, 'batches in the background are tried again in a second');
      }
      await sleep(RETRY_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  })();

  const takingUp = setInterval(() => {
    run(pool, scheduleStalled).catch((error: unknown) =>
      logger.warn({ err: error }, 'stalled batches could not be scheduled; it is tried again'),
    );
  }, STALLED_MS);

  return {
    async stop() {
      clearInterval(takingUp);
      stopping.abort(new Error('the core stops'));
      await runner?.stop().catch(() => undefined);
      await running;
    },
  };
}

/** The library tells of every job at `info`, which is our `debug`. Its `meta` holds payloads, which stay out of logs. */
function jobLogger(logger: Logger): JobLogger {
  return new JobLogger(() => (level, message) => {
    if (level === 'error') logger.error({ about: 'jobs' }, message);
    else if (level === 'warning') logger.warn({ about: 'jobs' }, message);
    else logger.debug({ about: 'jobs' }, message);
  });
}

import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { Logger } from 'pino';
import { run, statement } from '../postgres/sql.ts';
import { repeatUntilStopped } from '../runtime/repeat-until-stopped.ts';
import { throttledFailures } from '../runtime/throttled-report.ts';
import type { Subscription } from './log.ts';

/** How often old records are deleted, in ms. */
export const INTERVAL_MS = 10_000;
/** The maximum number of records of a partition that one statement reads, so that it takes far less than a second. */
const STEP = 5_000;

/** One process at a time does the work; the others don't wait and do nothing. */
const TURN = `turn as materialized (select pg_try_advisory_xact_lock(hashtext('signpost_log'), 0) as mine)`;

const toCompact = statement<{ topic: string; partition: number }>(
  'log_to_compact',
  'select topic, partition from log_partitions join log_topics on name = topic where compacted and clean < next',
);

/**
 * Deletes records superseded by newer ones appended since the last run. Indexes: log_records_pkey for the newer ones,
 * and log_records_by_key for the older ones with their keys. `order by` makes Postgres choose these even before it has
 * statistics: otherwise it compared each record of a partition with all others, 0.8 s for 700 records. (`=` on the key
 * would make the order irrelevant.) `greatest`: src/restored.ts may have raised it meanwhile.
 */
const compact = statement<{ more: boolean }>(
  'log_compact',
  `with ${TURN}, step as materialized (
     select clean as first, least(next, clean + ${STEP}) as past, next
     from turn, log_partitions where mine and topic = $1 and partition = $2
   ), superseded as materialized (
     select old.ctid
     from step
       cross join lateral (
         select key, "offset" from log_records
         where topic = $1 and partition = $2 and "offset" >= step.first and "offset" < step.past
         order by "offset"
       ) newer
       cross join lateral (
         select ctid from log_records
         where compacted and topic = $1 and partition = $2
           and key >= newer.key and key <= newer.key and "offset" < newer."offset"
         order by key, "offset"
       ) old
   ), deleted as (
     delete from log_records where ctid = any(array(select ctid from superseded))
   )
   update log_partitions set clean = greatest(clean, step.past) from step where topic = $1 and partition = $2
   returning step.past < step.next as more`,
);

/** Tombstones are kept for a day, for followers that were disconnected for less. Index: log_records_tombstones. */
const deleteTombstones = statement<{ more: boolean }>(
  'log_delete_tombstones',
  `with ${TURN}, forgotten as materialized (
     select records.ctid from turn, log_records records
     where mine and compacted and value is null and at < now() - interval '1 day' limit ${STEP}
   ), gone as (
     delete from log_records where ctid = any(array(select ctid from forgotten))
   )
   select count(*) = ${STEP} as more from forgotten`,
);

/** Deletes from the oldest record of each partition on. Index: log_records_pkey, one probe if nothing has expired. */
const expire = statement<{ more: boolean }>(
  'log_expire',
  `with ${TURN}, expired as materialized (
     select p.topic, p.partition, max(old."offset") as last, count(*) as records
     from turn cross join log_partitions p
       join (select name, now() - retention_ms * interval '1 millisecond' as kept_from from log_topics
             where not compacted) t on t.name = p.topic
       cross join lateral (
         select from (select at from log_records where topic = p.topic and partition = p.partition
                      order by "offset" limit 1) oldest where at < kept_from
       ) due
       cross join lateral (
         select "offset" from (select "offset", at from log_records where topic = p.topic and partition = p.partition
                               order by "offset" limit ${STEP}) oldest where at < kept_from
       ) old
     where mine
     group by p.topic, p.partition
   ), gone as (
     delete from log_records r using expired e
     where r.topic = e.topic and r.partition = e.partition and r."offset" <= e.last
   )
   select coalesce(max(records) = ${STEP}, false) as more from expired`,
);

/** Enforces the retention of topics in the Postgres log, in small steps in the background. */
export function startRetention(pool: Pool, logger: Logger): Subscription {
  const reportFailure = throttledFailures((fields) =>
    logger.warn(fields, 'old records of the log can’t be deleted; it is tried again'),
  );

  async function work(signal: AbortSignal): Promise<void> {
    const inSteps = async (step: () => Promise<{ more: boolean }[]>) => {
      while (!signal.aborted && (await step())[0]?.more);
    };
    await sleep(INTERVAL_MS, undefined, { signal, ref: false });
    for (const { topic, partition } of await run(pool, toCompact)) {
      await inSteps(() => run(pool, compact, [topic, partition]));
    }
    await inSteps(() => run(pool, deleteTombstones));
    await inSteps(() => run(pool, expire));
  }

  // Without a pause after a failure: each run waits before it begins.
  return repeatUntilStopped(work, { retryMs: 0, onError: reportFailure });
}

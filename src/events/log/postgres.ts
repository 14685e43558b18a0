import { crc32 } from 'node:zlib';
import pg from 'pg';
import type { Logger } from 'pino';
import { run, statement, transaction } from '../../db/sql.ts';
import type { ConsumeOptions, FollowOptions, Log, NewRecord, Positions, Subscription, Topic } from './log.ts';
import { CHANNEL, type Progress, readTopic } from './postgres-reader.ts';

/** Connections for publishing and questions; each subscription has one of its own besides. */
const CONNECTIONS = 3;
const CONNECT_TIMEOUT_MS = 3_000;
/** How often old records are deleted, and how many at a time. */
const SWEEP_MS = 60_000;

const lockPartitions = statement(
  'log_lock_partitions',
  'select from log_partitions where topic = $1 and partition = any($2::integer[]) order by partition for update',
);

/** Index: log_partitions_pkey. $2 partitions, $3 keys, $4 headers, $5 values, in the order of publishing. */
const append = statement(
  'log_append',
  `with sent as (
     select partition, key, headers, value, row_number() over (partition by partition order by turn) as nth
     from unnest($2::integer[], $3::text[], $4::jsonb[], $5::bytea[]) with ordinality
       as sent (partition, key, headers, value, turn)
   ), moved as (
     update log_partitions p set next = p.next + counted.records
     from (select partition, max(nth) as records from sent group by partition) counted
     where p.topic = $1 and p.partition = counted.partition
     returning p.partition, p.next - counted.records as start
   )
   insert into log_records (topic, partition, "offset", compacted, key, headers, value)
   select $1, partition, start + nth - 1, (select compacted from log_topics where name = $1), key, headers, value
   from sent join moved using (partition)`,
);

/** Index: log_records_by_key. */
const compact = statement(
  'log_compact',
  `delete from log_records old
   where topic = $1 and compacted and key = any($2::text[])
     and exists (select from log_records newer
                 where newer.topic = old.topic and newer.compacted and newer.key = old.key
                   and newer.partition = old.partition and newer."offset" > old."offset")`,
);

/** Index: log_records_by_age. Tombstones go after a day. */
const sweep = statement(
  'log_sweep',
  `delete from log_records r using log_topics t
   where r.topic = t.name and r.at < now() - interval '1 hour'
     and case when t.compacted then r.value is null and r.at < now() - interval '1 day'
              else r.at < now() - t.retention_ms * interval '1 millisecond' end`,
);

const topicsNamed = statement<{ name: string; partitions: number; compacted: boolean }>(
  'log_topics_named',
  'select name, partitions, compacted from log_topics where name = any($1::text[])',
);

const createTopic = statement(
  'log_create_topic',
  `with topic as (
     insert into log_topics (name, partitions, compacted, retention_ms) values ($1, $2, $3, $4)
     on conflict do nothing returning name
   )
   insert into log_partitions (topic, partition) select name, generate_series(0, $2 - 1) from topic`,
);

const endsOf = statement<{ partition: number; next: string }>(
  'log_ends',
  'select partition, next from log_partitions where topic = $1',
);

/**
 * The log in Postgres, for a machine that has no Kafka: everything that `Log` promises, at a cost that one machine
 * bears. Needs migration 0002 and changes no schema itself.
 */
export function openPostgresLog({ url, clientId, logger }: { url: string; clientId: string; logger: Logger }): Log {
  const config = { connectionString: url, connectionTimeoutMillis: CONNECT_TIMEOUT_MS, application_name: clientId };
  const pool = new pg.Pool({ ...config, max: CONNECTIONS });
  pool.on('error', (error) => logger.warn({ err: error }, 'an idle connection of the log broke'));
  const topics = new Map<string, { partitions: number; compacted: boolean }>();
  const subscriptions = new Set<Subscription>();
  const sweeper = setInterval(() => {
    run(pool, sweep).catch((error: unknown) => logger.warn({ err: error }, 'old records of the log were kept'));
  }, SWEEP_MS);
  sweeper.unref();

  async function topicNamed(name: string): Promise<{ partitions: number; compacted: boolean }> {
    const known = topics.get(name);
    if (known) return known;
    const [row] = await run(pool, topicsNamed, [[name]]);
    if (!row) throw new Error(`topic ${name} does not exist`);
    topics.set(name, row);
    return row;
  }

  function subscribe(options: ConsumeOptions | FollowOptions, progress: Progress): Subscription {
    const subscription = readTopic({ ...options, progress, connect: () => connect(config) });
    subscriptions.add(subscription);
    return {
      stop: () => {
        subscriptions.delete(subscription);
        return subscription.stop();
      },
    };
  }

  return {
    async publish(topic: string, records: readonly NewRecord[]) {
      if (records.length === 0) return;
      const { partitions, compacted } = await topicNamed(topic);
      const keys = records.map(({ key }) => key);
      const placed = keys.map((key) => crc32(key) % partitions);
      await transaction(pool, async (tx) => {
        await run(tx, lockPartitions, [topic, [...new Set(placed)]]);
        const headers = records.map((record) => JSON.stringify(record.headers ?? {}));
        await run(tx, append, [topic, placed, keys, headers, records.map(({ value }) => value)]);
        if (compacted) await run(tx, compact, [topic, [...new Set(keys)]]);
        await tx.query('select pg_notify($1, $2)', [CHANNEL, topic]);
      });
    },
    consume: (options) => subscribe(options, { group: options.group }),
    follow: (options) => subscribe(options, { from: options.from }),
    async ends(topic): Promise<Positions> {
      const rows = await run(pool, endsOf, [topic]);
      return new Map(rows.map(({ partition, next }) => [partition, BigInt(next)]));
    },
    async ensureTopics(wanted: readonly Topic[]) {
      for (const { name, partitions, retention } of wanted) {
        const compacted = retention === 'compact';
        await run(pool, createTopic, [name, partitions, compacted, compacted ? null : retention]);
      }
      const existing = await run(pool, topicsNamed, [wanted.map(({ name }) => name)]);
      for (const { name, compacted } of existing) {
        const topic = wanted.find((each) => each.name === name);
        if (topic && (topic.retention === 'compact') !== compacted) {
          throw new Error(`topic ${name} exists and ${compacted ? 'is' : 'is not'} compacted, unlike what is needed`);
        }
      }
    },
    async check() {
      await pool.query('select');
    },
    async close() {
      clearInterval(sweeper);
      await Promise.all([...subscriptions].map((subscription) => subscription.stop()));
      await pool.end();
    },
  };
}

async function connect(config: pg.ClientConfig): Promise<pg.Client> {
  const client = new pg.Client(config);
  await client.connect();
  return client;
}

import { crc32 } from 'node:zlib';
import pg from 'pg';
import type { Logger } from 'pino';
import { binaryArray } from '../postgres/binary-array.ts';
import { connectionOptions } from '../postgres/connection-options.ts';
import { logIdleErrors } from '../postgres/idle-errors.ts';
import { first, KEEP_ALIVE, promptStatement, type Queryable, run, statement } from '../postgres/sql.ts';
import { type Log, type NewRecord, type Positions, type Subscription, type Topic, TopicMismatch } from './log.ts';
import { consumeTopic, followTopic, identityOf } from './postgres-reader.ts';
import { startRetention } from './postgres-retention.ts';
import { Subscriptions } from './subscriptions.ts';
import { SCANS } from './topics.ts';

/** Connections for publishing and queries; each subscription has an additional one. */
const CONNECTIONS = 3;
const CONNECT_TIMEOUT_MS = 3_000;
/** A statement that takes longer counts as failed. */
const QUERY_TIMEOUT_MS = 10_000;

/**
 * A database function, so that gateways need no privileges on the tables. $1 topic, $2 whether it is compacted, $3
 * partitions, $4 keys, $5 headers, $6 values, in the order of publishing. Without the topic it returns no row, while
 * the function alone would append nothing and succeed. `pg_restore` grants the right to read `log_topics` last, so what
 * is published meanwhile fails.
 */
const append = promptStatement(
  'log_append',
  'select log_append($1, $2, $3, $4, $5, $6) from log_topics where name = $1',
  QUERY_TIMEOUT_MS,
);

/** The same for scans, the only topic to which the gateways' role may append. */
const appendScans = promptStatement(
  'log_append_scans',
  `select log_append_scans($1, $2, $3, $4) from log_topics where name = '${SCANS.name}'`,
  QUERY_TIMEOUT_MS,
);

/** Creates a topic, or updates the retention of an existing one of the same kind. */
const createTopic = statement(
  'log_create_topic',
  `with topic as (
     insert into log_topics (name, partitions, compacted, retention_ms) values ($1, $2, $3, $4)
     on conflict (name) do update set retention_ms = excluded.retention_ms
     where log_topics.compacted = excluded.compacted
       and log_topics.retention_ms is distinct from excluded.retention_ms
     returning name, partitions
   )
   insert into log_partitions (topic, partition) select name, generate_series(0, partitions - 1) from topic
   on conflict do nothing`,
);

/** `retention`: as in `Topic`. */
const existingTopics = statement<{ name: string; retention: string }>(
  'log_existing_topics',
  `select name, case when compacted then 'compact' else retention_ms::text end as retention from log_topics
   where name = any($1)`,
);

const topicNamed = statement<{ partitions: number; compacted: boolean }>(
  'log_topic_named',
  'select partitions, compacted from log_topics where name = $1',
);

const endsOf = statement<{ partition: number; next: string }>(
  'log_ends',
  'select partition, next from log_partitions where topic = $1',
);

/** Index: log_records_pkey, of each partition from its oldest record up to the first one that fits. */
const offsetsSince = statement<{ partition: number; start: string }>(
  'log_since',
  `select partition, coalesce(
     (select "offset" from log_records r
      where r.topic = p.topic and r.partition = p.partition and at >= $2 order by "offset" limit 1), next
   ) as start
   from log_partitions p where topic = $1`,
);

/** Index: log_partitions_pkey. */
const raise = statement(
  'log_raise_offsets',
  `update log_partitions set (next, clean) = (
     select raised, raised
     from (select greatest(next + $2, (extract(epoch from now()) * 1000000)::bigint) as raised) as computed
   ) where topic = $1`,
);

/**
 * Raises the offsets of a topic's next records by `amount`, or to the time in µs if that is more. The records published
 * so far are not compacted any more, so the next ones must supersede them all. Changes nothing if the log is in Kafka.
 */
export async function raiseOffsets(on: Queryable, topic: string, amount: number): Promise<void> {
  await run(on, raise, [topic, amount]);
}

/**
 * Opens the log in Postgres, for a machine without Kafka: it keeps all promises of `Log`, at a cost that one machine
 * can bear. Requires migrations 0002 and 0012 and changes no schema itself. Returns at once, even if Postgres is
 * unavailable.
 */
export function openPostgresLog({ url, clientId, logger }: { url: string; clientId: string; logger: Logger }): Log {
  const config = {
    ...connectionOptions(url),
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
    ...KEEP_ALIVE,
    application_name: clientId,
  };
  const pool = new pg.Pool({ ...config, max: CONNECTIONS } as pg.PoolConfig);
  logIdleErrors(pool, logger);
  const topics = new Map<string, { partitions: number; compacted: boolean }>();
  const subscriptions = new Subscriptions();
  let retention: Subscription | undefined;

  async function topicInfo(name: string): Promise<{ partitions: number; compacted: boolean }> {
    const topic = topics.get(name) ?? (await first(pool, topicNamed, [name]));
    if (!topic) throw new Error(`topic ${name} does not exist`);
    topics.set(name, topic);
    return topic;
  }

  async function publish(over: Queryable, topic: string, records: readonly NewRecord[]): Promise<void> {
    if (records.length === 0) return;
    const { partitions, compacted } = await topicInfo(topic);
    const partitionsOf = records.map(({ key }) => crc32(key) % partitions);
    const keys = records.map(({ key }) => key);
    const headersOf = records.map(({ headers }) => JSON.stringify(headers ?? {}));
    const values = records.map(({ value }) => value);
    const columns = [
      binaryArray('integer', partitionsOf),
      binaryArray('text', keys),
      binaryArray('jsonb', headersOf),
      binaryArray('bytea', values),
    ];
    const appended =
      topic === SCANS.name
        ? await run(over, appendScans, columns)
        : await run(over, append, [topic, compacted, ...columns]);
    if (appended.length > 0) return;
    topics.delete(topic);
    throw new Error(`topic ${topic} does not exist`);
  }

  async function connect(): Promise<pg.Client> {
    const client = new config.Client(config);
    // Nobody else listens before the connection is handed over, and an unhandled error would end the process.
    client.on('error', () => undefined);
    try {
      await client.connect();
      await config.onConnect(client);
      return client;
    } catch (error) {
      client.end().catch(() => undefined);
      throw error;
    }
  }

  return {
    publish: (topic, records) => publish(pool, topic, records),
    // No other process obtains the lock before this connection has ended, and with it all of its statements.
    openFencedPublisher: async (_, over) => ({
      publish: (topic, records) => publish(over, topic, records),
      close: async () => {},
    }),
    consume: (options) => subscriptions.add(consumeTopic(connect, options)),
    follow: (options) => subscriptions.add(followTopic(connect, options)),
    async ends(topic): Promise<Positions> {
      const rows = await run(pool, endsOf, [topic]);
      return new Map(rows.map(({ partition, next }) => [partition, BigInt(next)]));
    },
    async since(topic, time): Promise<Positions> {
      const rows = await run(pool, offsetsSince, [topic, new Date(time)]);
      return new Map(rows.map(({ partition, start }) => [partition, BigInt(start)]));
    },
    identity: async (topic) => identityOf(topic),
    async ensureTopics(wanted: readonly Topic[], creating) {
      const rows = await run(pool, existingTopics, [wanted.map(({ name }) => name)]);
      const existing = new Map(rows.map(({ name, retention }) => [name, retention]));
      const missing = wanted.flatMap(({ name }) => (existing.has(name) ? [] : name));
      if (missing.length > 0) await creating?.(missing);
      for (const { name, partitions, retention } of wanted) {
        if (existing.get(name) === String(retention)) continue;
        const compacted = retention === 'compact';
        await run(pool, createTopic, [name, partitions, compacted, compacted ? null : retention]);
        if ((await topicInfo(name)).compacted !== compacted) {
          throw new TopicMismatch(
            `topic ${name} exists and is ${compacted ? 'not ' : ''}compacted, unlike what is needed`,
          );
        }
      }
      // Only cores create topics, and only they may delete records.
      retention ??= startRetention(pool, logger);
    },
    async check() {
      await pool.query('select');
    },
    async close() {
      await retention?.stop();
      await subscriptions.stop();
      await pool.end();
    },
  };
}

import { fromBinary } from '@bufbuild/protobuf';
import type { Pool, PoolClient } from 'pg';
import type { Log, LogRecord } from '../../common/log/log.ts';
import { readTopic } from '../../common/log/read-topic.ts';
import { EVENTS, ROUTES } from '../../common/log/topics.ts';
import { BY_COST, BY_INDEX, first, run, statement, withConnection } from '../../common/postgres/sql.ts';
import { upToBytes } from '../../common/postgres/up-to-bytes.ts';
import { RouteSchema } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import { BinaryRows } from '../db/binary-rows.ts';

/** Maximum rows compared at a time, and the maximum size of their values except for the last one. */
const PAGE = 1_000;
const PAGE_BYTES = 8 * 1024 * 1024;
/** Maximum difference between the clocks of cores, Kafka and Postgres, in ms. */
const MAX_CLOCK_SKEW_MS = 300_000;

/** A published row of the outbox, and whether the log has it. */
export interface ComparedRow {
  readonly key: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly value: Uint8Array | null;
  readonly found: boolean;
}

export interface Comparison {
  /** When the oldest compared row was written; undefined if no row was compared. */
  readonly keptFrom: Date | undefined;
}

export interface ComparisonOptions {
  readonly pool: Pool;
  readonly log: Log;
  /** Older rows are skipped; ms since 1970. */
  readonly since: number;
  readonly signal: AbortSignal;
}

interface PublishedRow {
  id: string;
  at: Date;
  key: string;
  headers: Record<string, string>;
  value: Uint8Array | null;
}

const position = statement<{ last: string; holes: string }>(
  'events_audit_position',
  'select last, holes::text as holes from outbox_position',
);

/** Index: outbox_id of each slot, forced by `BY_INDEX`. Ids are in the order of `at`, except for milliseconds. */
const oldest = statement<{ at: Date }>(
  'events_audit_oldest',
  'select at from outbox where at >= $1 and topic = $2 order by id limit 1',
);

const COMPARED = 'id, at, key, headers, value';

/** Index: outbox_id of each slot, forced by `BY_INDEX`. */
const published = statement<PublishedRow>(
  'events_audit_published',
  upToBytes(
    `select ${COMPARED} from outbox
     where id > $1 and id <= $2 and not id <@ $3::int8multirange and at >= $4 and topic = $5 order by id limit ${PAGE}`,
    COMPARED,
    'id',
    PAGE_BYTES,
  ),
);

/** Identifies a record of a topic, with its version. */
interface Identity {
  readonly id: string;
  readonly version: bigint;
}

type IdentityOf = (record: Pick<LogRecord, 'key' | 'headers' | 'value'>) => Identity;

/** Events are identified by their id. */
function eventIdentity({ headers }: Pick<LogRecord, 'headers'>): Identity {
  return { id: headers.ce_id ?? '', version: 0n };
}

/** A route stands for all older routes of its key too, because compaction removes those. */
function routeIdentity({ key, value }: Pick<LogRecord, 'key' | 'value'>): Identity {
  try {
    return { id: key, version: fromBinary(RouteSchema, value ?? new Uint8Array()).version };
  } catch {
    // A foreign record in the topic is not a route.
    return { id: key, version: 0n };
  }
}

/**
 * Passes each published event that is still in the outbox to `handle`, in the order of publishing, with whether the log
 * has it. The log's records go into a temporary table, so that memory holds one page at a time.
 */
export function compareEvents(
  options: ComparisonOptions,
  handle: (rows: readonly ComparedRow[]) => Promise<void> | void,
): Promise<Comparison> {
  return compare(options, EVENTS.name, eventIdentity, handle);
}

/** Like `compareEvents`, but for routes. */
export function compareRoutes(
  options: ComparisonOptions,
  handle: (rows: readonly ComparedRow[]) => Promise<void> | void,
): Promise<Comparison> {
  return compare(options, ROUTES.name, routeIdentity, handle);
}

function compare(
  { pool, log, since, signal }: ComparisonOptions,
  topic: string,
  identityOf: IdentityOf,
  handle: (rows: readonly ComparedRow[]) => Promise<void> | void,
): Promise<Comparison> {
  return withConnection(pool, async ({ client, markBroken }) => {
    // Read before the ends of the log, so that the log already contains everything up to this position.
    const reached = await first(client, position);
    const ends = await log.ends(topic);
    await client.query(`create temp table logged (id text collate "C" not null, version bigint not null); ${BY_INDEX}`);
    try {
      const start = await first(client, oldest, [new Date(since), topic]);
      if (!start) return { keptFrom: undefined };
      const from = await log.since(topic, start.at.getTime() - MAX_CLOCK_SKEW_MS);
      await readTopic(log, { topic, from, ends, signal }, (records) => store(client, records, identityOf));
      await client.query(`create index on logged (id, version); analyze logged`);
      let keptFrom: Date | undefined;
      for (let last = '0'; ; ) {
        signal.throwIfAborted();
        const rows = await run(client, published, [last, reached?.last, reached?.holes, new Date(since), topic]);
        const end = rows.at(-1);
        if (!end) return { keptFrom };
        keptFrom ??= rows[0]?.at;
        await handle(await compareRows(client, rows, identityOf));
        last = end.id;
      }
    } finally {
      await client.query(`${BY_COST}; drop table logged`).catch(markBroken);
    }
  });
}

async function store(client: PoolClient, records: readonly LogRecord[], identityOf: IdentityOf): Promise<void> {
  await BinaryRows.copyEach(client, 'logged (id, version)', records.map(identityOf), (rows, { id, version }) => {
    rows.row(2);
    rows.text(id);
    rows.bigint(version);
  });
}

async function compareRows(
  client: PoolClient,
  rows: readonly PublishedRow[],
  identityOf: IdentityOf,
): Promise<ComparedRow[]> {
  const identities = rows.map(identityOf);
  // Not prepared: a prepared statement would refer to the temporary table of an earlier audit.
  const { rows: found } = await client.query<{ ordinality: number }>(
    `select ordinality::integer from unnest($1::text[], $2::bigint[]) with ordinality as compared (id, version, ordinality)
     where exists (select from logged l where l.id = compared.id and l.version >= compared.version)`,
    [identities.map(({ id }) => id), identities.map(({ version }) => version)],
  );
  const positions = new Set(found.map(({ ordinality }) => ordinality));
  return rows.map(({ key, headers, value }, index) => ({ key, headers, value, found: positions.has(index + 1) }));
}

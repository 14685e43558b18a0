import { fromBinary } from '@bufbuild/protobuf';
import type { Pool, PoolClient } from 'pg';
import type { Log, LogRecord } from '../../common/log/log.ts';
import { readTopic } from '../../common/log/read-topic.ts';
import { EVENTS, ROUTES } from '../../common/log/topics.ts';
import { BY_COST, BY_INDEX, first, run, statement, withConnection } from '../../common/postgres/sql.ts';
import { RouteSchema } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import { BinaryRows } from '../db/binary-rows.ts';

/** Rows that are compared at a time. */
const PAGE = 1_000;
/** How much the clocks of cores, Kafka and Postgres may differ, in ms. */
const CLOCKS_MS = 300_000;

/** A published row of the outbox, and whether the log has it. */
export interface ComparedRow {
  readonly key: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly value: Uint8Array | null;
  readonly found: boolean;
}

export interface Comparison {
  /** When the oldest row that was compared was written; undefined where there was none. */
  readonly keptFrom: Date | undefined;
}

export interface ComparisonOptions {
  readonly pool: Pool;
  readonly log: Log;
  /** Rows that are older are left out; ms since 1970. */
  readonly since: number;
  readonly signal: AbortSignal;
}

interface KeptRow {
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

/** Index: outbox_id of each slot, always (`BY_INDEX`). */
const published = statement<KeptRow>(
  'events_audit_published',
  `select id, at, key, headers, value from outbox
   where id > $1 and id <= $2 and not id <@ $3::int8multirange and at >= $4 and topic = $5 order by id limit ${PAGE}`,
);

/** What identifies a record of a topic, and how new it is. */
interface Mark {
  readonly mark: string;
  readonly version: bigint;
}

type MarkOf = (record: Pick<LogRecord, 'key' | 'headers' | 'value'>) => Mark;

/** An event is the one with its id. */
function eventMark({ headers }: Pick<LogRecord, 'headers'>): Mark {
  return { mark: headers.ce_id ?? '', version: 0n };
}

/** A route stands for the older ones of its key, which compaction takes away. */
function routeMark({ key, value }: Pick<LogRecord, 'key' | 'value'>): Mark {
  try {
    return { mark: key, version: fromBinary(RouteSchema, value ?? new Uint8Array()).version };
  } catch {
    // What somebody else has put into the topic is no route of ours.
    return { mark: key, version: 0n };
  }
}

/**
 * Gives each published event that the outbox keeps, in the order of publishing, with whether the log has it. What the log
 * has is put into a temporary table, so that memory holds a page at a time.
 */
export function compareEvents(
  options: ComparisonOptions,
  handle: (rows: readonly ComparedRow[]) => Promise<void> | void,
): Promise<Comparison> {
  return compare(options, EVENTS.name, eventMark, handle);
}

/** The same for routes. */
export function compareRoutes(
  options: ComparisonOptions,
  handle: (rows: readonly ComparedRow[]) => Promise<void> | void,
): Promise<Comparison> {
  return compare(options, ROUTES.name, routeMark, handle);
}

function compare(
  { pool, log, since, signal }: ComparisonOptions,
  topic: string,
  markOf: MarkOf,
  handle: (rows: readonly ComparedRow[]) => Promise<void> | void,
): Promise<Comparison> {
  return withConnection(pool, async ({ client, markBroken }) => {
    // In this order: the log has all that is behind the position, but for what it lost.
    const at = await first(client, position);
    const ends = await log.ends(topic);
    const from = await log.since(topic, since - CLOCKS_MS);
    await client.query('create temp table log_marks (mark text collate "C" not null, version bigint not null)');
    try {
      await readTopic(log, { topic, from, ends, signal }, (records) => keep(client, records, markOf));
      await client.query(`create index on log_marks (mark, version); analyze log_marks; ${BY_INDEX}`);
      let keptFrom: Date | undefined;
      for (let last = '0'; ; ) {
        signal.throwIfAborted();
        const rows = await run(client, published, [last, at?.last, at?.holes, new Date(since), topic]);
        keptFrom ??= rows[0]?.at;
        if (rows.length > 0) await handle(await judge(client, rows, markOf));
        if (rows.length < PAGE) return { keptFrom };
        last = rows.at(-1)?.id ?? last;
      }
    } finally {
      await client.query(`${BY_COST}; drop table log_marks`).catch(markBroken);
    }
  });
}

async function keep(client: PoolClient, records: readonly LogRecord[], markOf: MarkOf): Promise<void> {
  const marks = records.map(markOf);
  await BinaryRows.copyEach(client, 'log_marks (mark, version)', marks, (rows, { mark, version }) => {
    rows.row(2);
    rows.text(mark);
    rows.bigint(version);
  });
}

async function judge(client: PoolClient, rows: readonly KeptRow[], markOf: MarkOf): Promise<ComparedRow[]> {
  const marks = rows.map(markOf);
  // The temporary table is another one each time, which a prepared statement would not know.
  const { rows: found } = await client.query<{ nth: number }>(
    `select nth::integer from unnest($1::text[], $2::bigint[]) with ordinality as asked (mark, version, nth)
     where exists (select from log_marks m where m.mark = asked.mark and m.version >= asked.version)`,
    [marks.map(({ mark }) => mark), marks.map(({ version }) => version)],
  );
  const nths = new Set(found.map(({ nth }) => nth));
  return rows.map(({ key, headers, value }, index) => ({ key, headers, value, found: nths.has(index + 1) }));
}

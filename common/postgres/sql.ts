import pg, { type CustomTypesConfig, type Pool, type PoolClient, type QueryResultRow } from 'pg';
import { type CommitLimit, endAt, expectTimeLeft, NO_TIMEOUT, type Remaining } from './commit-limit.ts';
import { observed } from './observed.ts';
import { mustReconnect } from './unavailable.ts';

/**
 * A statement that is prepared once per connection, under its name. Values are always passed as parameters, never in
 * the text, so neither logs nor `pg_stat_activity` show them.
 */
export interface Statement<Row extends QueryResultRow> {
  readonly name: string;
  readonly text: string;
  /** Its maximum duration in ms: a connection that has not answered it by then has lost its server. */
  readonly withinMs?: number;
  /** Carries the row's type; never set. */
  readonly row?: Row;
}

/** Runs statements: the pool, or the connection of a transaction (`connectionOf` an entity manager). */
export interface Queryable {
  query<Row extends QueryResultRow>(query: PreparedQuery): Promise<{ rows: Row[] }>;
}

/** Results are parsed by pg's own rules: the ORM's pool is configured to return times and JSON as text. */
interface PreparedQuery {
  readonly name: string;
  readonly text: string;
  readonly values: unknown[];
  readonly types: CustomTypesConfig;
  readonly query_timeout?: number;
}

/**
 * The timeout of statements that never take long, in ms. A machine that vanishes closes no connection, and the
 * operating system gives up on data sent to it only after 15 minutes. Other statements may take as long as they need.
 */
export const PROMPT_MS = 10_000;

/** TCP keep-alive: the operating system probes idle connections and closes those whose peer is gone. */
export const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: PROMPT_MS };

/** A query that never takes long, for `client.query`. */
export function promptQuery(text: string): { readonly text: string; readonly query_timeout: number } {
  return { text, query_timeout: PROMPT_MS };
}

const ROLLBACK = promptQuery('rollback');

/**
 * Declares a statement. `name`: that of the module, then what the statement does, as in `codes_find`; unique in the
 * process and at most 63 bytes long. Metrics and traces show it.
 */
export function statement<Row extends QueryResultRow>(name: string, text: string): Statement<Row> {
  return { name, text };
}

/** Declares a statement that never takes long. The first one of a call or a loop on a connection should be one. */
export function promptStatement<Row extends QueryResultRow>(
  name: string,
  text: string,
  withinMs = PROMPT_MS,
): Statement<Row> {
  return { name, text, withinMs };
}

/** Runs a statement; `values` are its parameters in order. */
export async function run<Row extends QueryResultRow>(
  on: Queryable,
  { name, text, withinMs }: Statement<Row>,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  return observed(name, async () => {
    const result = await on.query<Row>({
      name,
      text,
      values: [...values],
      types: pg.types,
      ...(withinMs !== undefined && { query_timeout: withinMs }),
    });
    const { rows } = result;
    // pg's timeout keeps the result, and would keep the rows, until V8 collects old objects.
    result.rows = [];
    return rows;
  });
}

/** Runs a statement that returns at most one row. */
export async function first<Row extends QueryResultRow>(
  on: Queryable,
  what: Statement<Row>,
  values: readonly unknown[] = [],
): Promise<Row | undefined> {
  return (await run(on, what, values))[0];
}

/**
 * Runs `work` in one transaction: committed when it returns, rolled back when it throws. Changes made by an RPC have a
 * `limit`: a call that its caller considers failed must not take effect later, overwriting changes made meanwhile.
 * `withinMs`: when Postgres ends it at the latest.
 */
export async function transaction<Result>(
  on: Pool | Connection,
  work: (tx: PoolClient) => Promise<Result>,
  limit?: CommitLimit,
  withinMs?: number,
): Promise<Result> {
  if (!('client' in on)) return withConnection(on, (connection) => transaction(connection, work, limit, withinMs));
  const { client } = on;
  try {
    await begin(client, limit, withinMs);
    const result = await work(client);
    limit?.signal.throwIfAborted();
    await client.query('commit');
    return result;
  } catch (error) {
    // A timed-out connection cannot run ROLLBACK.
    if (mustReconnect(error)) on.markBroken(error);
    else await client.query(ROLLBACK).catch(on.markBroken);
    throw error;
  }
}

/**
 * Runs `work` in one transaction that takes at most `withinMs`: its connection is closed then, which fails the
 * statement under way, a COPY too. For work whose statements may take longer than `PROMPT_MS`, as they all end
 * together. If this process is suspended, Postgres ends it a second later, and the locks that others wait for.
 */
export async function transactionWithin<Result>(
  pool: Pool,
  withinMs: number,
  work: (tx: PoolClient) => Promise<Result>,
  limit?: CommitLimit,
): Promise<Result> {
  return withConnection(pool, async (connection) => {
    const timer = setTimeout(() => {
      breakOff(connection, new Error(`The transaction was not over after ${withinMs} ms.`));
    }, withinMs);
    try {
      return await transaction(connection, work, limit, withinMs + 1_000);
    } finally {
      clearTimeout(timer);
    }
  });
}

/** Begins a transaction in one round trip, including the timeout at its limit. */
async function begin(client: PoolClient, limit?: CommitLimit, withinMs?: number): Promise<void> {
  limit?.signal.throwIfAborted();
  if (limit?.commitBy === undefined) {
    const timeout = withinMs === undefined ? '' : `; ${NO_TIMEOUT}; set local transaction_timeout = ${withinMs}`;
    await client.query(promptQuery(`begin${timeout}`));
    return;
  }
  const text = `begin; ${NO_TIMEOUT}; ${endAt(limit.commitBy, withinMs)}`;
  // pg's types don't cover that several statements return several results.
  const results = (await client.query(promptQuery(text))) as unknown as readonly { readonly rows: Remaining[] }[];
  expectTimeLeft(results[2]?.rows[0]);
}

/** A connection that is checked out for longer than one transaction. */
export interface Connection {
  readonly client: PoolClient;
  /** Marks the connection as unusable, so that it is not returned to the pool. */
  markBroken(error: Error): void;
}

/** Closes a connection, which fails the statement under way. */
export function breakOff({ client, markBroken }: Connection, reason: Error): void {
  markBroken(reason);
  client.end().catch(() => undefined);
}

/** Runs `work` with a connection checked out from the pool. */
export async function withConnection<Result>(
  pool: Pool,
  work: (connection: Connection) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect();
  let broken: Error | undefined;
  const markBroken = (error: Error) => {
    broken = error;
  };
  // Between two statements there is no other error listener, and an unhandled error would end the process.
  client.on('error', markBroken);
  try {
    return await work({ client, markBroken });
  } catch (error) {
    if (mustReconnect(error)) markBroken(error);
    throw error;
  } finally {
    // A broken connection, or one that could not roll back, is not returned to the pool; it may still emit errors.
    if (!broken) client.off('error', markBroken);
    client.release(broken);
  }
}

/**
 * Selected by a statement that is a transaction of its own: its commit does not wait for the disk or a standby. If
 * Postgres's machine loses power, such commits of the last 0.6 s (three times `wal_writer_delay`) are lost, unless a
 * commit that waited followed them. Only for what may be forgotten or done again. Measured: 200 instead of 336 µs of
 * Postgres's CPU for an admission.
 */
export const COMMIT_WITHOUT_WAIT = `set_config('synchronous_commit', 'off', true)`;

const WITHOUT_INDEX = ['enable_seqscan', 'enable_bitmapscan', 'enable_sort'];
/**
 * Forces index scans on a connection, whatever the statistics say. They are useless for a table that is filled and
 * emptied: a statement prepared while the outbox was empty sorted all of it, dead rows included, for every 1,000 rows.
 */
export const BY_INDEX = WITHOUT_INDEX.map((setting) => `set ${setting} = off`).join('; ');
/** `BY_INDEX` until the end of a transaction. */
export const byIndex = promptStatement(
  'sql_by_index',
  `select ${WITHOUT_INDEX.map((setting) => `set_config('${setting}', 'off', true)`).join()}`,
);
/** Reverts `BY_INDEX`. */
export const BY_COST = WITHOUT_INDEX.map((setting) => `reset ${setting}`).join('; ');

import pg, { type CustomTypesConfig, type Pool, type PoolClient, type QueryResultRow } from 'pg';
import { type CommitLimit, endAt, expectTime, NO_TIMEOUT, type Remaining } from './commit-limit.ts';
import { isUnanswered } from './unavailable.ts';

/**
 * A statement that is prepared once a connection, under its name. Values always travel as parameters: they never reach
 * the text, so neither logs nor `pg_stat_activity` show them.
 */
export interface Statement<Row extends QueryResultRow> {
  readonly name: string;
  readonly text: string;
  /** It never takes longer, in ms: a connection that has not answered it by then has lost its server. */
  readonly withinMs?: number;
  /** Carries the row's type; never set. */
  readonly row?: Row;
}

/** What statements run on: the pool, or the connection of a transaction (`connectionOf` an entity manager). */
export interface Queryable {
  query<Row extends QueryResultRow>(query: PreparedQuery): Promise<{ rows: Row[] }>;
}

/** Values are read by pg's own rules: the ORM's pool is set up to hand times and JSON over as text. */
interface PreparedQuery {
  readonly name: string;
  readonly text: string;
  readonly values: unknown[];
  readonly types: CustomTypesConfig;
  readonly query_timeout?: number;
}

/**
 * How long a server may take over what never takes long, in ms. A machine that vanished ends no connection, and what was
 * sent to it is given up by the system after a quarter of an hour; and other statements may take as long as they need.
 */
export const ANSWER_MS = 10_000;

/** Has the system ask, on a connection that is silent, whether there is still somebody, and end it when there is not. */
export const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: ANSWER_MS };

/** Text that never takes long, for `client.query`. */
export function promptly(text: string): { readonly text: string; readonly query_timeout: number } {
  return { text, query_timeout: ANSWER_MS };
}

/** Begins and ends transactions. */
const BEGIN = promptly('begin');
const ROLLBACK = promptly('rollback');

/** Declares a statement. `name` is unique in the process and at most 63 bytes long. */
export function statement<Row extends QueryResultRow>(name: string, text: string): Statement<Row> {
  return { name, text };
}

/** Declares a statement that never takes long: whatever a call or a loop does first on a connection should be one. */
export function promptStatement<Row extends QueryResultRow>(
  name: string,
  text: string,
  withinMs = ANSWER_MS,
): Statement<Row> {
  return { name, text, withinMs };
}

/** Runs a statement; `values` are its parameters in order. */
export async function run<Row extends QueryResultRow>(
  on: Queryable,
  { name, text, withinMs }: Statement<Row>,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  const { rows } = await on.query<Row>({
    name,
    text,
    values: [...values],
    types: pg.types,
    ...(withinMs !== undefined && { query_timeout: withinMs }),
  });
  return rows;
}

/** Runs a statement that gives at most one row. */
export async function first<Row extends QueryResultRow>(
  on: Queryable,
  what: Statement<Row>,
  values: readonly unknown[] = [],
): Promise<Row | undefined> {
  return (await run(on, what, values))[0];
}

/**
 * Runs `work` in one transaction: committed when it returns, rolled back when it throws. What an RPC changes has a
 * `limit`: a call whose caller was told that it failed must not happen later, over changes that were made meanwhile.
 */
export async function transaction<Result>(
  on: Pool | Connection,
  work: (tx: PoolClient) => Promise<Result>,
  limit?: CommitLimit,
): Promise<Result> {
  if (!('client' in on)) return connected(on, (connection) => transaction(connection, work, limit));
  const { client } = on;
  try {
    await begin(client, limit);
    const result = await work(client);
    limit?.signal.throwIfAborted();
    await client.query('commit');
    return result;
  } catch (error) {
    // Behind a statement that is not answered no other one is.
    if (isUnanswered(error)) on.broke(error);
    else await client.query(ROLLBACK).catch(on.broke);
    throw error;
  }
}

/** In one round trip also where Postgres is to end the transaction at the limit. */
async function begin(client: PoolClient, limit: CommitLimit | undefined): Promise<void> {
  limit?.signal.throwIfAborted();
  if (limit?.commitBy === undefined) {
    await client.query(BEGIN);
    return;
  }
  const text = `begin; ${NO_TIMEOUT}; ${endAt(limit.commitBy)}`;
  // Its types do not know that several statements have as many results.
  const results = (await client.query(promptly(text))) as unknown as readonly { readonly rows: Remaining[] }[];
  expectTime(results[2]?.rows[0]);
}

/** A connection that is held for longer than one transaction. */
export interface Connection {
  readonly client: PoolClient;
  /** Tells that the connection is not to be used again by anybody. */
  broke(error: Error): void;
}

/** Runs `work` with a connection of its own. */
export async function connected<Result>(
  pool: Pool,
  work: (connection: Connection) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect();
  let broken: Error | undefined;
  const broke = (error: Error) => {
    broken = error;
  };
  // Between two statements nobody else hears that the connection broke, which would end the process.
  client.on('error', broke);
  try {
    return await work({ client, broke });
  } catch (error) {
    if (isUnanswered(error)) broke(error);
    throw error;
  } finally {
    // A connection that broke, or could not even roll back, is not put back into the pool; it may complain once more.
    if (!broken) client.off('error', broke);
    client.release(broken);
  }
}

/**
 * Makes a connection go through tables along their indexes, whatever statistics say. They can't know a table that is
 * filled and emptied: a statement prepared while the outbox was empty sorted all of it, and what was already deleted, for
 * every 1,000 rows of it.
 */
export const BY_INDEX = 'set enable_seqscan = off; set enable_bitmapscan = off; set enable_sort = off';
/** Takes `BY_INDEX` back. */
export const BY_COST = 'reset enable_seqscan; reset enable_bitmapscan; reset enable_sort';

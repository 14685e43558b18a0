import { isRaw, type LoggingOptions } from '@mikro-orm/core';
import { NativeQueryBuilder, PostgreSqlConnection, PostgreSqlDriver } from '@mikro-orm/postgresql';
import type pg from 'pg';
import type { PoolClient, QueryResult } from 'pg';
import { transaction } from '../../common/postgres/sql.ts';

/** A statement as the ORM builds it, and its parameters. */
type Query = Parameters<PostgreSqlConnection['execute']>[0];
type Params = Parameters<PostgreSqlConnection['execute']>[1];

/**
 * The ORM's connection to Postgres. It differs from the library's own in two ways.
 *
 * Values are sent as parameters. The library writes them into the text of a statement, where `pg_stat_activity` and
 * `log_statement` show them: email addresses of members, hashes of keys, secrets of webhooks.
 *
 * Transactions are those of `transaction`, and their context is the pg connection that they run on. So named statements
 * and COPY run in the same transaction as the entity manager's work, and a connection that Postgres terminates in a
 * transaction is released to the pool as broken. The library never releases such a connection, since it does so only
 * after a successful ROLLBACK.
 */
class BoundConnection extends PostgreSqlConnection {
  override async execute<Result>(
    query: Query,
    params: Params = [],
    method: 'all' | 'get' | 'run' = 'all',
    tx?: PoolClient,
    loggerContext?: LoggingOptions,
  ): Promise<Result> {
    const { text, values } = parameterized(query, params);
    const on = tx ?? (await poolOf(this));
    return this.executeQuery(text, async () => resultOf(await on.query(text, values), method) as Result, loggerContext);
  }

  override async transactional<Result>(
    work: (tx: never) => Promise<Result>,
    { ctx }: { readonly ctx?: unknown } = {},
  ): Promise<Result> {
    const withClient = work as (tx: PoolClient) => Promise<Result>;
    return ctx ? nested(ctx as PoolClient, withClient) : transaction(await poolOf(this), withClient);
  }

  /** The library ends the pool only if it has itself taken a connection from it. */
  override async close(force?: boolean): Promise<void> {
    const pool = await poolOf(this);
    await super.close(force);
    if (!pool.ending) await pool.end();
  }

  /** Unsupported: a caller could forget to end the transaction. */
  override begin(): never {
    throw new Error('Use ormTransaction.');
  }
}

/** MikroORM's driver for Postgres with a `BoundConnection`. */
export class BoundDriver extends PostgreSqlDriver {
  protected override readonly connection: PostgreSqlConnection = new BoundConnection(this.config);
}

/** The pool of the ORM's connection. */
export async function poolOf(connection: PostgreSqlConnection): Promise<pg.Pool> {
  return (await connection.getNativeClient()) as unknown as pg.Pool;
}

async function nested<Result>(tx: PoolClient, work: (tx: PoolClient) => Promise<Result>): Promise<Result> {
  await tx.query('savepoint nested');
  try {
    const result = await work(tx);
    await tx.query('release savepoint nested');
    return result;
  } catch (error) {
    await tx.query('rollback to savepoint nested');
    throw error;
  }
}

/** A statement with Postgres's placeholders `$1`, `$2`, …, and their values. */
interface Parameterized {
  readonly text: string;
  readonly values: unknown[];
}

/**
 * The ORM writes `?` for a value, `??` for an identifier and `\?` for a question mark. An array parameter is expanded
 * to a list, since the ORM passes array values as text.
 */
function parameterized(query: Query, params: Params): Parameterized {
  const built = query instanceof NativeQueryBuilder ? query.toRaw() : query;
  const values: unknown[] = [];
  if (isRaw(built)) return { text: bind(built.sql, built.params, values), values };
  if (!Array.isArray(params)) throw new TypeError('Named parameters are not supported.');
  return { text: params.length === 0 ? built : bind(built, params, values), values };
}

function bind(sql: string, params: readonly unknown[], values: unknown[]): string {
  let next = 0;
  return sql.replace(/\\\?|\?\??/g, (placeholder) => {
    if (placeholder === '\\?') return '?';
    const param = params[next++];
    return placeholder === '??' ? identifier(String(param)) : bindOne(param, values);
  });
}

function bindOne(param: unknown, values: unknown[]): string {
  if (Array.isArray(param)) return param.map((each) => bindOne(each, values)).join(', ');
  if (isRaw(param)) return bind(param.sql, param.params, values);
  return `$${values.push(param)}`;
}

function identifier(name: string): string {
  return `"${name.replaceAll('"', '""').replace('.', '"."')}"`;
}

function resultOf(result: QueryResult | QueryResult[], method: 'all' | 'get' | 'run') {
  // Several statements in one text, as in migrations, return as many results, which are not used.
  if (Array.isArray(result)) return [];
  const { rows, rowCount } = result;
  if (method === 'all') return rows;
  return method === 'get' ? rows[0] : { affectedRows: rowCount ?? 0, row: rows[0], rows };
}

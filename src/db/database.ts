import { Migrator } from '@mikro-orm/migrations';
import { MikroORM } from '@mikro-orm/postgresql';
import { Logger, runMigrations } from 'graphile-worker';
import type pg from 'pg';
import { type Logger as Pino, pino } from 'pino';
import { logIdleErrors } from '../../common/postgres/idle-errors.ts';
import { KEEP_ALIVE } from '../../common/postgres/sql.ts';
import { BoundDriver, poolOf } from './bound-connection.ts';
import { entities } from './entities.ts';
import { grantGatewayRole } from './gateway-role.ts';
import { LOCKS } from './locks.ts';
import { migrations } from './migrations/index.ts';

/** Postgres as the rooms use it: entities through the ORM, statements of weight through the pool (see `sql.ts`). */
export interface Database {
  readonly orm: MikroORM;
  /** The ORM's own pool, for prepared statements and COPY. */
  readonly pool: pg.Pool;
  /** Brings the schema up to date; safe to call from several processes at once. */
  migrate(): Promise<void>;
  close(): Promise<void>;
}

/** How long a statement may wait for a connection before the caller is told that Postgres is away, in ms. */
const CONNECT_TIMEOUT_MS = 3_000;

/**
 * Opens a pool of at most `connections`, two or more; the first statement connects. `logger` hears of idle connections
 * that break; for programs and tests that live shorter than that matters there is none.
 */
export async function openDatabase(
  url: string,
  connections: number,
  logger: Pino = pino({ level: 'silent' }),
): Promise<Database> {
  const orm = await MikroORM.init({
    driver: BoundDriver,
    clientUrl: url,
    entities,
    extensions: [Migrator],
    migrations: { migrationsList: migrations, snapshot: false, tableName: 'migrations', silent: true },
    pool: { min: 0, max: connections },
    driverOptions: {
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      ...KEEP_ALIVE,
      application_name: 'signpost-core',
    },
    // Postgres that is away must not end the start: the core answers 503 until it is back.
    ensureDatabase: false,
  });
  const pool = await poolOf(orm.em.getConnection());
  logIdleErrors(pool, logger);
  return {
    orm,
    pool,
    async migrate() {
      const client = await pool.connect();
      try {
        await client.query('select pg_advisory_lock($1)', [LOCKS.migration]);
        await orm.migrator.up();
        // The tables of the background jobs, which their library keeps in a schema of its own.
        await runMigrations({ pgPool: pool, logger: new Logger(() => () => undefined) });
        await grantGatewayRole(client);
      } finally {
        await client.query('select pg_advisory_unlock($1)', [LOCKS.migration]).catch(() => undefined);
        client.release();
      }
    },
    close: () => orm.close(true),
  };
}

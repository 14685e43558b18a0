import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { EntitySchema } from '@mikro-orm/core';
import { Migrator } from '@mikro-orm/migrations';
import { MikroORM, type Options } from '@mikro-orm/postgresql';
import { Logger, runMigrations } from 'graphile-worker';
import type pg from 'pg';
import { type Logger as Pino, pino } from 'pino';
import { connectionOptions } from '../../common/postgres/connection-options.ts';
import { urlsOfHosts } from '../../common/postgres/database-url.ts';
import { logIdleErrors } from '../../common/postgres/idle-errors.ts';
import { KEEP_ALIVE, transaction } from '../../common/postgres/sql.ts';
import { isLockTimeout } from '../../common/postgres/unavailable.ts';
import { OperatorError } from '../../common/runtime/operator-error.ts';
import { throttledFailures } from '../../common/runtime/throttled-report.ts';
import { BoundDriver, poolOf } from './bound-connection.ts';
import { grantGatewayRole } from './gateway-role.ts';
import { LOCKS } from './locks.ts';
import { migrations } from './migrations/index.ts';
import { repeatAfterDeadlock } from './repeat-after-deadlock.ts';
import { recordOldestRelease, type SchemaState, schemaState } from './schema-version.ts';
import { expectUsableServer } from './usable-server.ts';

/** Postgres as the modules use it: entities through the ORM, hot statements through the pool (see `sql.ts`). */
export interface Database {
  readonly orm: MikroORM;
  /** The ORM's own pool, for prepared statements and COPY. */
  readonly pool: pg.Pool;
  /**
   * Brings the schema up to date; safe to call from several processes at once. A newer schema that this release can use
   * stays as it is. Returns how the schema was before. Fails with an `OperatorError` if it is newer and unusable.
   */
  migrate(): Promise<SchemaState>;
  /** Fails with an `OperatorError` if the schema has to be migrated, or is newer and unusable. */
  expectMigrated(): Promise<void>;
  close(): Promise<void>;
}

/**
 * A migration that locks several tables can deadlock with the release that still runs: how often migrating is begun.
 */
const MIGRATION_ATTEMPTS = 10;

/**
 * How long a statement of a migration waits for a lock, in ms. A backup keeps others from changing the columns of any
 * table until it ends, and all calls, even those that only read the table, wait behind a migration that waits for it.
 */
const LOCK_MS = 2_000;

/** How long calls can go on between two attempts to get such a lock, in ms: doubled each time, up to a maximum. */
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 30_000;

/** How long a statement may wait for a connection before the call fails because Postgres is unavailable, in ms. */
export const CONNECT_TIMEOUT_MS = 3_000;

/** The ORM's options, also for its own command line (`mikro-orm.config.js`). */
export function ormOptions(url: string, entities: readonly EntitySchema[]): Options {
  return {
    driver: BoundDriver,
    // The ORM reads only host, login and database from it, not the parameters for TLS, nor `?host=` without a host.
    clientUrl: (urlsOfHosts(url)?.[0] ?? url).replace('@/', '@localhost/'),
    entities: [...entities],
    extensions: [Migrator],
    migrations: {
      migrationsList: migrations,
      path: fileURLToPath(new URL('migrations', import.meta.url)),
      emit: 'ts',
      fileName: (_, name = 'unnamed') => `${String(migrations.length + 1).padStart(4, '0')}-${name}`,
      snapshot: false,
      tableName: 'migrations',
    },
    // Not managed by the ORM: the tables of the log, which gateways use without it, and those of background jobs.
    schemaGenerator: {
      ignoreSchema: ['graphile_worker'],
      skipTables: [/^log_/],
      skipViews: ['outbox_waiting'],
      ignoreRoutines: true,
      ignoreTriggers: true,
    },
    // Otherwise the ORM would create a missing database when it connects, which needs another database to connect to.
    ensureDatabase: false,
    driverOptions: connectionOptions(url),
  };
}

/** Repeats a migration while other transactions keep a lock that it needs for longer than it waits. */
async function repeatWhileLocked(logger: Pino, migrate: () => Promise<void>): Promise<void> {
  const report = throttledFailures(({ failures }) => {
    logger.warn({ failures }, 'a migration waits for a backup or another long transaction; it is tried again');
  });
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
    try {
      return await migrate();
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
      report(error);
      await sleep(pause);
    }
  }
}

/**
 * Opens a pool of at most `connections`, two or more; the first statement connects. `logger` logs idle connections that
 * break, and migrations that wait; short-lived programs and tests can omit it.
 */
export async function openDatabase(
  url: string,
  connections: number,
  entities: readonly EntitySchema[],
  logger: Pino = pino({ level: 'silent' }),
): Promise<Database> {
  const options = ormOptions(url, entities);
  const orm = await MikroORM.init({
    ...options,
    migrations: { ...options.migrations, silent: true },
    pool: { min: 0, max: connections },
    driverOptions: {
      ...options.driverOptions,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      ...KEEP_ALIVE,
      application_name: 'signpost-core',
    },
  });
  const pool = await poolOf(orm.em.getConnection());
  logIdleErrors(pool, logger);
  return {
    orm,
    pool,
    async migrate() {
      const client = await pool.connect();
      try {
        await expectUsableServer(client);
        await client.query('select pg_advisory_lock($1)', [LOCKS.migration]);
        const state = await schemaState(client);
        // What an older release grants may be less than gateways of the newer one need.
        if (state === 'newer') return state;
        // Creates the table of migrations, if it is missing.
        const pending = await orm.migrator.getPending();
        await recordOldestRelease(client);
        // One transaction for all would lock most tables until its end, in another order than the calls and the
        // recorders of the release that still runs. A migration that fails leaves those before it.
        for (const { name } of pending) {
          const run = () =>
            transaction(pool, async (tx) => {
              await tx.query(`set local lock_timeout = ${LOCK_MS}`);
              await orm.migrator.up({ migrations: [name], transaction: tx });
            });
          await repeatWhileLocked(logger, () => repeatAfterDeadlock(MIGRATION_ATTEMPTS, run));
        }
        // The tables of the background jobs, which their library has in its own schema.
        await runMigrations({ pgPool: pool, logger: new Logger(() => () => undefined) });
        await grantGatewayRole(client);
        return state;
      } finally {
        await client.query('select pg_advisory_unlock($1)', [LOCKS.migration]).catch(() => undefined);
        client.release();
      }
    },
    async expectMigrated() {
      await expectUsableServer(pool);
      if ((await schemaState(pool)) !== 'older') return;
      throw new OperatorError('The schema is older than this release: run `npm run migrate`, or set MIGRATE=true.');
    },
    close: () => orm.close(true),
  };
}

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { startPostgres } from '../../local/postgres.ts';
import { openDatabase } from '../../src/db/database.ts';
import { GATEWAY_ROLE } from '../../src/db/gateway-role.ts';
import { entities } from '../../src/entities.ts';
import { kafkaForTests } from './kafka.ts';

/**
 * The program that runs the services shared by all tests, from its start until its parent exits or disconnects. It is a
 * separate process because vitest exits within a millisecond of Ctrl-C, which is too short to stop Postgres.
 */

/** The message that it sends once everything runs. */
export interface Services {
  /** A migrated database that tests clone and never connect to. Its role may create databases. */
  readonly templateUrl: string;
  /** The same server as the role `signpost_gateway`, or null if no credentials were given. */
  readonly gatewayUrl: string | null;
  /** Comma-separated, or null without Kafka. */
  readonly kafkaBrokers: string | null;
}

/** Data need not survive the run, so durability is off. */
const NOT_DURABLE = {
  fsync: 'off',
  full_page_writes: 'off',
  synchronous_commit: 'off',
  max_connections: '200',
};

/**
 * The Postgres of a test run: the one named by `TEST_DATABASE_URL`, else a new one. With a named one, tests of the
 * gateway role also need `TEST_GATEWAY_DATABASE_URL`. Without it they are skipped with a message; with `CI=true` that
 * is a failure.
 */
async function postgresForTests(): Promise<{ url: string; gatewayUrl: string | null; stop(): Promise<void> }> {
  const url = process.env.TEST_DATABASE_URL;
  const gatewayUrl = process.env.TEST_GATEWAY_DATABASE_URL ?? null;
  if (url) {
    if (gatewayUrl === null) {
      const sentence = `Tests of the role ${GATEWAY_ROLE} need TEST_GATEWAY_DATABASE_URL: the same server as that role.`;
      if (process.env.CI === 'true') throw new Error(sentence);
      console.error(`${sentence} They are skipped.`);
    }
    return { url, gatewayUrl, stop: async () => undefined };
  }
  const folder = await mkdtemp(join(tmpdir(), 'signpost-test-'));
  const postgres = await startPostgres({ folder, settings: NOT_DURABLE });
  return {
    ...postgres,
    async stop() {
      await postgres.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Migrates once per run; a clone then takes milliseconds. */
async function makeTemplate(url: string): Promise<string> {
  const template = new URL(url);
  template.pathname = '/signpost_template';
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query('drop database if exists signpost_template with (force)');
  await client.query('create database signpost_template');
  await client.end();
  const database = await openDatabase(template.href, 2, entities);
  await database.migrate();
  await database.close();
  return template.href;
}

const starting = [postgresForTests(), kafkaForTests()] as const;

process.once('disconnect', async () => {
  const settled = await Promise.allSettled(starting);
  await Promise.all(settled.map((service) => (service.status === 'fulfilled' ? service.value?.stop() : undefined)));
  process.exit();
});

try {
  const [postgres, kafka] = await Promise.all(starting);
  const templateUrl = await makeTemplate(postgres.url);
  const { gatewayUrl } = postgres;
  process.send?.({ templateUrl, gatewayUrl, kafkaBrokers: kafka?.brokers ?? null } satisfies Services);
} catch (error) {
  console.error(error);
  process.exitCode = 1;
  process.disconnect?.();
}

import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import './ports.ts';
import { LOOPBACK } from '../../local/free-port.ts';
import { startPostgres } from '../../local/postgres.ts';
import { openDatabase } from '../../src/db/database.ts';
import { GATEWAY_ROLE } from '../../src/db/gateway-role.ts';
import { entities } from '../../src/entities.ts';
import { kafkaForTests } from './kafka.ts';
import type { SharedSignpost } from './processes.ts';
import { startProcesses } from './start-processes.ts';

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
  /** Answers with the `SharedSignpost` of the run, without its function. */
  readonly sharedSignpost: string;
}

const TEMPLATE = 'signpost_template';
const SHARED = 'signpost_shared';

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

/** Replaces a database, if it exists, by a copy of another one; returns its URL. */
async function makeDatabase(url: string, name: string, template: string): Promise<string> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(`drop database if exists ${name} with (force)`);
  await client.query(`create database ${name} template ${template}`);
  await client.end();
  return onDatabase(url, name);
}

function onDatabase(url: string, name: string): string {
  const other = new URL(url);
  other.pathname = `/${name}`;
  return other.href;
}

/** Migrates once per run; a clone then takes milliseconds. */
async function makeTemplate(url: string): Promise<string> {
  const template = await makeDatabase(url, TEMPLATE, 'template1');
  const database = await openDatabase(template, 2, entities);
  await database.migrate();
  await database.close();
  return template;
}

/**
 * Starts the Signpost that files of tests share when the first one asks the returned server for it: it takes a second
 * or more, which files that have no use for it don't wait for.
 */
async function shareSignpost(url: string, gatewayUrl: string | null) {
  let started: Promise<Omit<SharedSignpost, 'createAccount'>> | undefined;
  let stop = async () => {};
  const start = async () => {
    const databaseUrl = await makeDatabase(url, SHARED, TEMPLATE);
    const gatewayDatabaseUrl = onDatabase(gatewayUrl ?? url, SHARED);
    return startProcesses({ databaseUrl, gatewayDatabaseUrl }, (stopAll) => {
      stop = stopAll;
    });
  };
  const server = createServer((_request, response) => {
    started ??= start();
    started.then(
      ({ corePort, databaseUrl, gateways, serviceToken, url }) =>
        response.end(
          JSON.stringify({ corePort, databaseUrl, gateways: gateways.map(({ url }) => ({ url })), serviceToken, url }),
        ),
      (error: unknown) => response.writeHead(500).end(`The shared Signpost could not be started: ${error}`),
    );
  }).listen(0, LOOPBACK);
  await once(server, 'listening');
  return {
    url: `http://${LOOPBACK}:${(server.address() as AddressInfo).port}`,
    async stop() {
      await started?.catch(() => undefined);
      await stop();
    },
  };
}

const starting = [postgresForTests(), kafkaForTests()] as const;
let shared: Awaited<ReturnType<typeof shareSignpost>> | undefined;

process.once('disconnect', async () => {
  await shared?.stop();
  const settled = await Promise.allSettled(starting);
  await Promise.all(settled.map((service) => (service.status === 'fulfilled' ? service.value?.stop() : undefined)));
  process.exit();
});

try {
  const [postgres, kafka] = await Promise.all(starting);
  const templateUrl = await makeTemplate(postgres.url);
  const { url, gatewayUrl } = postgres;
  shared = await shareSignpost(url, gatewayUrl);
  const kafkaBrokers = kafka?.brokers ?? null;
  process.send?.({ templateUrl, gatewayUrl, kafkaBrokers, sharedSignpost: shared.url } satisfies Services);
} catch (error) {
  console.error(error);
  process.exitCode = 1;
  process.disconnect?.();
}

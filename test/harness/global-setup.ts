import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import type { TestProject } from 'vitest/node';
import { startPostgres } from '../../local/postgres.ts';
import { openDatabase } from '../../src/db/database.ts';
import { kafkaForTests } from './kafka.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** A migrated database that tests clone and nobody connects to. Its role may create databases. */
    templateUrl: string;
    /** The same server as the role `signpost_gateway`, or null where the server has no such role. */
    gatewayUrl: string | null;
    /** Comma-separated, or null where no Kafka can be had. */
    kafkaBrokers: string | null;
  }
}

/** No test outlives the machine's next crash, so nothing is made durable. */
const NOT_DURABLE = {
  fsync: 'off',
  full_page_writes: 'off',
  synchronous_commit: 'off',
  max_connections: '200',
};

/** Starts what the tests share. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const starting = [postgresForTests(), kafkaForTests()] as const;
  const stop = async () => {
    const settled = await Promise.allSettled(starting);
    await Promise.all(settled.map((service) => (service.status === 'fulfilled' ? service.value?.stop() : undefined)));
  };
  // Vitest leaves at once after Ctrl-C and would leave both running.
  const interrupted = () => void stop().finally(() => process.exit(130));
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted);
  const teardown = async () => {
    process.off('SIGINT', interrupted).off('SIGTERM', interrupted);
    await stop();
  };
  try {
    const [postgres, kafka] = await Promise.all(starting);
    project.provide('templateUrl', await makeTemplate(postgres.url));
    project.provide('gatewayUrl', postgres.gatewayUrl);
    project.provide('kafkaBrokers', kafka?.brokers ?? null);
  } catch (error) {
    await teardown();
    throw error;
  }
  return teardown;
}

async function postgresForTests(): Promise<{ url: string; gatewayUrl: string | null; stop(): Promise<void> }> {
  const url = process.env.TEST_DATABASE_URL;
  if (url !== undefined) return { url, gatewayUrl: null, stop: async () => undefined };
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

/** Migrates once a run; a clone then takes milliseconds. */
async function makeTemplate(url: string): Promise<string> {
  const template = new URL(url);
  template.pathname = '/signpost_template';
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query('drop database if exists signpost_template with (force)');
  await client.query('create database signpost_template');
  await client.end();
  const database = await openDatabase(template.href, 2);
  await database.migrate();
  await database.close();
  return template.href;
}

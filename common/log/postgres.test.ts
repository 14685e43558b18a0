import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, expect, test } from 'vitest';
import { startPostgres } from '../../local/postgres.ts';
import { openDatabase } from '../../src/db/database.ts';
import { entities } from '../../src/entities.ts';
import { conformance } from './log-suite.fixture.ts';
import { openPostgresLog } from './postgres.ts';

// A separate server, because it is restarted.
const folder = await mkdtemp(join(tmpdir(), 'signpost-log-'));
const settings = { fsync: 'off' };
let postgres = await startPostgres({ folder, settings });
afterAll(async () => {
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});
const database = await openDatabase(postgres.url, 2, entities);
await database.migrate();
await database.close();

const logger = pino({ level: 'silent' });

conformance('Postgres', () => ({
  open: () => openPostgresLog({ url: postgres.url, clientId: 'signpost-test', logger }),
  options: { kafkaBrokers: [], databaseUrl: postgres.url },
  async restart() {
    await postgres.stop();
    postgres = await startPostgres({ folder, settings });
  },
}));

test('a log whose Postgres is unavailable can be opened, rejects publishing, and can be closed', async () => {
  const log = openPostgresLog({ url: 'postgres://nobody@127.0.0.1:9/none', clientId: 'signpost-test', logger });
  const errors: unknown[] = [];
  log.consume({ topic: 't', group: 'g', handle: async () => undefined, onError: (error) => errors.push(error) });
  await expect(log.publish('t', [{ key: 'k', value: null }])).rejects.toThrow('ECONNREFUSED');
  await expect.poll(() => errors.length).toBeGreaterThan(0);
  await log.close();
});

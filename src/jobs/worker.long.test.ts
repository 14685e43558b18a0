import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { newUuid } from '../../common/contract/ids.ts';
import { run } from '../../common/postgres/sql.ts';
import { isUnavailable } from '../../common/postgres/unavailable.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { recordingLogger } from '../../test/harness/recording-logger.ts';
import { startTcpProxy } from '../../test/harness/tcp-proxy.ts';
import { openDatabase } from '../db/database.ts';
import { entities } from '../entities.ts';
import { taskOf } from './task.ts';
import { openJobPool, startWorker } from './worker.ts';

const EVENTUALLY = { timeout: 60_000, interval: 100 };
const logger = pino({ level: 'silent' });

test('jobs are done after Postgres has vanished, although the library miscounts them', async () => {
  const { url } = await freshDatabase();
  const database = await openDatabase(url, 3, entities);
  onTestFinished(() => database.close());
  const task = taskOf({ name: 'test_vanished', table: 'batches', property: 'id' });
  const [first, second, third] = [newUuid(), newUuid(), newUuid()];
  const begun: string[] = [];
  const vanished = Promise.withResolvers<void>();
  async function advance(id: string): Promise<boolean> {
    begun.push(id);
    if (id === first) await vanished.promise;
    return false;
  }
  // Only the library's connections vanish.
  const postgres = await startTcpProxy(url);
  const worker = startWorker({ databaseUrl: postgres.url, database, tasks: [{ task, advance }], logger });
  onTestFinished(() => worker.stop());
  await run(database.pool, task.schedule, [first]);
  await expect.poll(() => begun, EVENTUALLY).toEqual([first]);
  postgres.vanish();
  vanished.resolve();
  await run(database.pool, task.schedule, [second]);
  await expect.poll(() => begun, EVENTUALLY).toContain(second);
  // By now the library ends its runner, since it could not report that the first one was done.
  await run(database.pool, task.schedule, [third]);
  await expect.poll(() => begun, EVENTUALLY).toContain(third);
}, 150_000);

test('the start of the worker logs no warning', async () => {
  const { url } = await freshDatabase();
  const database = await openDatabase(url, 3, entities);
  onTestFinished(() => database.close());
  const task = taskOf({ name: 'test_started', table: 'batches', property: 'id' });
  const ids = [newUuid(), newUuid()];
  const begun: string[] = [];
  const { lines, logger: recording } = recordingLogger();
  const advance = async (id: string) => {
    begun.push(id);
    return false;
  };
  const worker = startWorker({ databaseUrl: url, database, tasks: [{ task, advance }], logger: recording });
  onTestFinished(() => worker.stop());
  for (const [index, id] of ids.entries()) {
    await run(database.pool, task.schedule, [id]);
    await expect.poll(() => begun, EVENTUALLY).toEqual(ids.slice(0, index + 1));
  }
  await worker.stop();
  expect(String(lines)).not.toContain('"level":40');
});

test('a worker and a search for stalled work that fail for long say so once a minute', async () => {
  const { url } = await freshDatabase();
  const database = await openDatabase(url, 3, entities);
  const task = taskOf({ name: 'test_failing', table: 'missing', property: 'id' });
  const { lines, logger: recording } = recordingLogger();
  const nowhere = 'postgres://localhost:1/none';
  const worker = startWorker({
    databaseUrl: nowhere,
    database,
    tasks: [{ task, advance: async () => false }],
    logger: recording,
  });
  await sleep(7_000);
  await worker.stop();
  await database.close();
  expect(lines.map((line) => JSON.parse(line).msg).sort()).toEqual([
    'stalled background work could not be scheduled; trying again',
    'the background worker failed; it restarts in a second',
  ]);
});

test('the library does not get a connection to a server that vanished again', async () => {
  const postgres = await startTcpProxy((await freshDatabase()).url);
  const pool = openJobPool(postgres.url, logger);
  onTestFinished(() => pool.end());
  const client = await pool.connect();
  expect((await client.query('show application_name')).rows).toEqual([{ application_name: 'signpost-core' }]);
  postgres.vanish();
  await expect(client.query('select')).rejects.toSatisfy(isUnavailable);
  // As the library does, without the error.
  client.release();
  expect(pool.totalCount).toBe(0);
  await pool.query('select');
});

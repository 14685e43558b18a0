import { once } from 'node:events';
import { type Logger, pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { type Log, TopicMismatch } from '../../common/log/log.ts';
import { ROUTES } from '../../common/log/topics.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { recordingLogger } from '../../test/harness/recording-logger.ts';
import { openDatabase } from '../db/database.ts';
import { entities } from '../entities.ts';
import { inMemoryLog } from '../scans/scans.fixture.ts';
import { startTopicUpkeep } from './topic-upkeep.ts';

test('routes are republished again if their topic is lost again meanwhile', async () => {
  const database = await openDatabase((await freshDatabase()).url, 8, entities);
  onTestFinished(() => database.close());
  let isMissing = false;
  const log = {
    ...inMemoryLog(),
    async ensureTopics(_topics: unknown, onMissing?: (names: readonly string[]) => Promise<void>) {
      if (isMissing) await onMissing?.([ROUTES.name]);
      isMissing = false;
    },
  };
  let published = 0;
  const start = () => {
    const upkeep = startTopicUpkeep({
      topics: [ROUTES],
      pool: database.pool,
      log,
      logger: pino({ level: 'silent' }),
      async republishRoutes() {
        published += 1;
        if (published === 1) {
          isMissing = true;
          await upkeep.ensure();
        }
        return 0;
      },
    });
    return upkeep;
  };
  const requests = async () => (await database.pool.query('select from routes_due')).rowCount;
  await database.pool.query('insert into routes_due default values');
  // Each one begins with routes that are due.
  for (const [times, left] of [
    [1, 1],
    [2, 0],
    [2, 0],
  ]) {
    const upkeep = start();
    await upkeep.ensure();
    await expect.poll(async () => [published, await requests()]).toEqual([times, left]);
    await upkeep.stop();
    expect([published, await requests()]).toEqual([times, left]);
  }
});

test('republishing that a stop interrupts is repeated by the next process, and is not logged as a failure', async () => {
  const database = await openDatabase((await freshDatabase()).url, 8, entities);
  onTestFinished(() => database.close());
  const { lines, logger } = recordingLogger();
  const log = { ...inMemoryLog(), ensureTopics: async () => {} };
  const start = (republishRoutes: (stopping: AbortSignal) => Promise<number>) =>
    startTopicUpkeep({ topics: [ROUTES], pool: database.pool, log, logger, republishRoutes });
  await database.pool.query('insert into routes_due default values');
  const begun = Promise.withResolvers<void>();
  const stopped = start(async (stopping) => {
    begun.resolve();
    await once(stopping, 'abort');
    throw stopping.reason;
  });
  // The relay, which waits for the topics, does not wait for all routes.
  await stopped.ensure();
  await begun.promise;
  await stopped.ensure();
  await stopped.stop();
  expect(lines).toEqual([]);
  let published = 0;
  const next = start(async () => ++published);
  onTestFinished(() => next.stop());
  await next.ensure();
  await expect.poll(() => published).toBe(1);
});

async function startUpkeep(ensureTopics: Log['ensureTopics'], logger: Logger) {
  const database = await openDatabase((await freshDatabase()).url, 2, entities);
  onTestFinished(() => database.close());
  const upkeep = startTopicUpkeep({
    topics: [ROUTES],
    pool: database.pool,
    log: { ...inMemoryLog(), ensureTopics },
    logger,
    republishRoutes: async () => 0,
  });
  onTestFinished(() => upkeep.stop());
  return upkeep;
}

test('missing topics are logged once, however often creating them fails', async () => {
  const { lines, logger } = recordingLogger();
  let refused = true;
  const upkeep = await startUpkeep(async (_, creating) => {
    await creating?.([ROUTES.name]);
    if (refused) throw new Error('Topic creation errors');
  }, logger);
  const logged = () => lines.filter((line) => line.includes('topics are missing and are created')).length;
  for (let attempt = 0; attempt < 3; attempt++) await expect(upkeep.ensure()).rejects.toThrow();
  expect(logged()).toBe(1);
  refused = false;
  await upkeep.ensure();
  // They have disappeared once more.
  await upkeep.ensure();
  expect(logged()).toBe(2);
});

test('a topic that an operator changes while this runs is a matter for somebody', async () => {
  const { lines, logger } = recordingLogger();
  await startUpkeep(() => Promise.reject(new TopicMismatch('topic x has cleanup.policy=delete')), logger);
  await expect.poll(() => lines.length).toBe(1);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    level: 50,
    msg: 'a topic keeps less than is needed',
    err: { message: 'topic x has cleanup.policy=delete' },
  });
});

import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { ROUTES } from '../../common/log/topics.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { openDatabase } from '../db/database.ts';
import { entities } from '../entities.ts';
import { inMemoryLog } from '../scans/scans.fixture.ts';
import { startTopicUpkeep } from './topic-upkeep.ts';

test('routes are republished again if their topic is lost again meanwhile', async () => {
  const database = await openDatabase((await freshDatabase()).url, 8, entities);
  onTestFinished(() => database.close());
  let isMissing = true;
  const log = {
    ...inMemoryLog(),
    async ensureTopics(_topics: unknown, onMissing?: (names: readonly string[]) => Promise<void>) {
      if (isMissing) await onMissing?.([ROUTES.name]);
      isMissing = false;
    },
  };
  let published = 0;
  const republishRoutes = async () => {
    published += 1;
    if (published === 1) {
      isMissing = true;
      await other.ensure();
    }
    return 0;
  };
  const start = () =>
    startTopicUpkeep({
      topics: [ROUTES],
      pool: database.pool,
      log,
      logger: pino({ level: 'silent' }),
      republishRoutes,
    });
  const [one, other] = [start(), start()];
  onTestFinished(async () => void (await Promise.all([one.stop(), other.stop()])));
  await one.ensure();
  expect(published).toBe(1);
  await one.ensure();
  expect(published).toBe(2);
  await one.ensure();
  expect(published).toBe(2);
});

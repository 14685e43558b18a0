import { expect, onTestFinished, test } from 'vitest';
import { isUnavailable } from '../../common/postgres/unavailable.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { startTcpProxy } from '../../test/harness/tcp-proxy.ts';
import { entities } from '../entities.ts';
import { openDatabase } from './database.ts';
import { repeatWhileSlow } from './repeat-while-slow.ts';

test('a start waits while connections time out, and fails at once if they are refused', async () => {
  const postgres = await startTcpProxy((await freshDatabase()).url);
  const database = await openDatabase(postgres.url, 2, entities);
  onTestFinished(() => database.close());
  let attempts = 0;
  const start = () =>
    repeatWhileSlow(async () => {
      attempts++;
      await database.migrate();
    });
  postgres.hang();
  const started = start();
  await expect.poll(() => attempts).toBe(2);
  postgres.restore();
  await started;

  postgres.cut();
  attempts = 0;
  await expect(start()).rejects.toSatisfy(isUnavailable);
  expect(attempts).toBe(1);
});

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { startSignpost } from './harness/processes.ts';

/** In s: work of every 30 s is in each window. */
const WINDOW = 30;
/** On a busy machine the work of the start is not over before the third one. */
const WINDOWS = 5;

test('an idle platform commits at most five transactions a second', async () => {
  const { databaseUrl } = await startSignpost({ cores: 2, roles: ['rpc', 'relay,recorder,worker'] });
  const client = new pg.Client(databaseUrl);
  await client.connect();
  onTestFinished(() => client.end());
  const commits = async () => {
    const { rows } = await client.query('select xact_commit from pg_stat_database where datname = current_database()');
    return Number(rows[0].xact_commit);
  };
  const perSecond: number[] = [];
  while (perSecond.length < WINDOWS && !perSecond.some((count) => count <= 5)) {
    const before = await commits();
    await sleep(WINDOW * 1_000);
    perSecond.push(((await commits()) - before) / WINDOW);
  }
  expect(Math.min(...perSecond)).toBeLessThanOrEqual(5);
}, 180_000);

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { startSignpost } from './harness/processes.ts';

const SECONDS = 15;
/** On a busy machine the work of the start is not over before the second one, and work of every minute falls into some. */
const WINDOWS = 6;

test('an idle platform commits at most five transactions a second', async () => {
  const { databaseUrl } = await startSignpost({ cores: 2, roles: ['rpc', 'relay,recorder,worker'] });
  const client = new pg.Client(databaseUrl);
  await client.connect();
  onTestFinished(() => client.end());
  const commits = async () => {
    const { rows } = await client.query('select xact_commit from pg_stat_database where datname = current_database()');
    return Number(rows[0].xact_commit);
  };
  const committed: number[] = [];
  for (let window = 0; window < WINDOWS && !committed.some((count) => count <= 5 * SECONDS); window++) {
    const before = await commits();
    await sleep(SECONDS * 1_000);
    committed.push((await commits()) - before);
  }
  expect(Math.min(...committed)).toBeLessThanOrEqual(5 * SECONDS);
}, 180_000);

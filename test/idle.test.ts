import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { startSignpost } from './harness/processes.ts';

/** Work of the start is over, and counted, after this time, in ms. */
const SETTLE_MS = 5_000;
const SECONDS = 15;

test('an idle platform commits at most five transactions a second', async () => {
  const { databaseUrl } = await startSignpost({ cores: 2, roles: ['rpc', 'relay,recorder,worker'] });
  const client = new pg.Client(databaseUrl);
  await client.connect();
  onTestFinished(() => client.end());
  const commits = async () => {
    const { rows } = await client.query('select xact_commit from pg_stat_database where datname = current_database()');
    return Number(rows[0].xact_commit);
  };
  await sleep(SETTLE_MS);
  const before = await commits();
  await sleep(SECONDS * 1_000);
  expect((await commits()) - before).toBeLessThanOrEqual(5 * SECONDS);
}, 60_000);

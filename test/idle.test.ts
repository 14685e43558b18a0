import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { startSignpost } from './harness/processes.ts';

const PER_SECOND = 5;
/** How long the commits are counted, in s: work of every minute is among them. */
const SECONDS = 60;
/** The work of the start is over once so many seconds were quiet. */
const QUIET_SECONDS = 5;

test('an idle platform commits at most five transactions a second', async () => {
  const { databaseUrl } = await startSignpost({ cores: 2, roles: ['rpc', 'relay,recorder,worker'] });
  const client = new pg.Client(databaseUrl);
  await client.connect();
  onTestFinished(() => client.end());
  const commits = async () => {
    const { rows } = await client.query('select xact_commit from pg_stat_database where datname = current_database()');
    return Number(rows[0].xact_commit);
  };
  const perSecond = async (seconds: number) => {
    const before = await commits();
    await sleep(seconds * 1_000);
    return ((await commits()) - before) / seconds;
  };
  await expect.poll(() => perSecond(QUIET_SECONDS), { timeout: 90_000 }).toBeLessThanOrEqual(PER_SECOND);
  expect(await perSecond(SECONDS)).toBeLessThanOrEqual(PER_SECOND);
}, 180_000);

import { mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { expect, test } from 'vitest';
import { startPostgres } from '../../local/postgres.ts';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { afterFile } from '../harness/after-file.ts';
import { freshDatabase } from '../harness/database.ts';
import { type Process, type Signpost, startSignpost } from '../harness/processes.ts';
import { startTcpProxy } from '../harness/tcp-proxy.ts';
import { isThere } from './visitors.ts';

const ROLES = ['rpc', 'relay,recorder,worker'];
const ROWS = 15_000;
const CUTS = 4;
const EVENTUALLY = { timeout: 60_000, interval: 20 };

/** Creates a batch whose codes are created in the background. */
async function postBatch(signpost: Signpost): Promise<void> {
  const { apiKey } = await signpost.createAccount({ plan: Plan.ENTERPRISE });
  const answer = await fetch(`${signpost.url}/api/v1/batches`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ rows: Array.from({ length: ROWS }, () => ({ target_url: 'https://example.com' })) }),
  });
  expect(answer.status).toBe(202);
}

/** Number of codes, read over a new connection; undefined while Postgres is unavailable. */
async function codesIn(url: string): Promise<number | undefined> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return Number((await client.query('select count(*) as n from codes')).rows[0].n);
  } catch {
    return undefined;
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** The background core; it must be the same process at the end. */
function backgroundOf(signpost: Signpost): Process {
  const [, core] = signpost.cores;
  if (!core) throw new Error('There are two cores.');
  return core;
}

/** Whether a process works in this folder: a busy backend of a killed Postgres does, and keeps it from starting. */
async function isUsed(folder: string): Promise<boolean> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const folders = await Promise.all(pids.map((pid) => readlink(`/proc/${pid}/cwd`).catch(() => undefined)));
  return folders.includes(folder);
}

test('a background core whose connections to Postgres break during a batch survives and completes the batch', async () => {
  const { url } = await freshDatabase();
  const postgres = await startTcpProxy(url);
  const signpost = await startSignpost({
    databaseUrl: postgres.url,
    gatewayDatabaseUrl: url,
    cores: 2,
    roles: ROLES,
    env: { BATCH_WINDOW_MS: '0' },
  });
  const core = backgroundOf(signpost);
  await postBatch(signpost);
  for (let cut = 0; cut < CUTS; cut++) {
    const before = (await codesIn(url)) ?? 0;
    await expect.poll(() => codesIn(url), EVENTUALLY).toBeGreaterThan(before);
    postgres.cut();
    await sleep(500);
    postgres.restore();
    expect(isThere(core.pid), await core.log()).toBe(true);
    if (((await codesIn(url)) ?? 0) === ROWS) break;
  }
  await expect.poll(() => codesIn(url), EVENTUALLY).toBe(ROWS);
  expect(isThere(core.pid), await core.log()).toBe(true);
}, 300_000);

test('a background core whose Postgres is killed during a batch survives and completes the batch', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'signpost-killed-'));
  afterFile(() => rm(folder, { recursive: true, force: true }));
  let postgres = await startPostgres({ folder });
  afterFile(() => postgres.stop());
  const { url, gatewayUrl } = postgres;
  const env = { BATCH_WINDOW_MS: '0' };
  const signpost = await startSignpost({
    databaseUrl: url,
    gatewayDatabaseUrl: gatewayUrl,
    cores: 2,
    roles: ROLES,
    env,
  });
  const core = backgroundOf(signpost);
  await postBatch(signpost);
  await expect.poll(() => codesIn(url), EVENTUALLY).toBeGreaterThan(0);
  const [postmaster] = (await readFile(join(folder, 'data', 'postmaster.pid'), 'utf8')).split('\n');
  process.kill(Number(postmaster), 'SIGKILL');
  await expect.poll(() => codesIn(url), EVENTUALLY).toBeUndefined();
  await sleep(2_000);
  await expect.poll(() => isUsed(join(folder, 'data')), EVENTUALLY).toBe(false);
  postgres = await startPostgres({ folder });
  expect(postgres.url).toBe(url);
  await expect.poll(() => codesIn(url), EVENTUALLY).toBe(ROWS);
  expect(isThere(core.pid), await core.log()).toBe(true);
}, 300_000);

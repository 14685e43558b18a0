import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { decodeId } from '../../common/contract/ids.ts';
import { AccountsService, Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { internal } from '../contract/internal.ts';
import { afterFile } from '../harness/after-file.ts';
import { holdSecondStep } from '../harness/hold-second-step.ts';
import { type Process, type Signpost, startSignpost } from '../harness/processes.ts';

const ROWS = 6_000;

interface Batch {
  readonly id: string;
  readonly status: string;
  readonly counts: { readonly pending: number; readonly created: number; readonly failed: number };
}

async function account(signpost: Signpost) {
  const { apiKey } = await signpost.createAccount({ plan: Plan.ENTERPRISE });
  return (method: string, path: string, json?: unknown, headers: Record<string, string> = {}) =>
    fetch(`${signpost.url}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${apiKey}`, ...headers },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    });
}

const rows = Array.from({ length: ROWS }, (_, n) => ({
  target_url: n % 100 === 99 ? 'nonsense' : `https://example.com/${n}`,
  folder: `Folder ${n % 7}`,
}));

/** Waits until the batch completes, which must happen by itself. */
async function completedBatch(call: Awaited<ReturnType<typeof account>>, id: string): Promise<Batch> {
  for (;;) {
    const answer = await call('GET', `/batches/${id}?limit=1`).catch(() => undefined);
    if (answer?.status === 200) {
      const { data } = (await answer.json()) as { data: Batch };
      if (data.status === 'completed') return data;
    }
    await new Promise((resolve) => setTimeout(resolve, 600));
  }
}

/** Expects every row to be final, every code to exist once, with one event, and one `bulk.completed`. */
async function expectWhole(signpost: Signpost, batch: Batch): Promise<void> {
  expect(batch.counts).toMatchObject({ pending: 0, failed: ROWS / 100, created: ROWS - ROWS / 100 });
  const client = new pg.Client({ connectionString: signpost.databaseUrl });
  await client.connect();
  try {
    const created = batch.counts.created;
    const count = async (sql: string, values: unknown[] = []) =>
      Number((await client.query<{ n: string }>(`select count(*) as n from ${sql}`, values)).rows[0]?.n);
    expect(await count('codes')).toBe(created);
    expect(
      await count('batch_rows r join codes c on c.id = r.code_id where batch_id = $1', [decodeId('batch', batch.id)]),
    ).toBe(created);
    expect(await count('folders')).toBe(7);
    const eventCount = (type: string) =>
      count(
        `(select headers ->> 'ce_id' from outbox where headers ->> 'ce_type' = $1
          union select headers ->> 'ce_id' from log_records where headers ->> 'ce_type' = $1) as eventCount`,
        [type],
      );
    await expect.poll(() => eventCount('qr.created')).toBe(created);
    await expect.poll(() => eventCount('bulk.completed')).toBe(1);
  } finally {
    await client.end();
  }
}

test('the request answers 202 when its window closes, and the batch is completed in the background, with visible progress', async () => {
  const signpost = await startSignpost({ env: { BATCH_WINDOW_MS: '0' } });
  onTestFinished(signpost.stop);
  const call = await account(signpost);
  const answer = await call('POST', '/batches', { rows }, { 'idempotency-key': 'one' });
  const { data } = (await answer.json()) as { data: Batch };
  expect([answer.status, answer.headers.get('location'), data.status]).toEqual([
    202,
    `/api/v1/batches/${data.id}`,
    'processing',
  ]);
  expect(data.counts.pending).toBeGreaterThan(0);
  const again = await call('POST', '/batches', { rows }, { 'idempotency-key': 'one' });
  expect([again.status, again.headers.get('idempotent-replay')]).toEqual([202, 'true']);
  await expectWhole(signpost, await completedBatch(call, data.id));
});

test('a batch whose core is killed repeatedly completes by itself, without creating a row twice', async () => {
  const signpost = await startSignpost({ cores: 2, gateways: 2, env: { BATCH_WINDOW_MS: '60000' } });
  onTestFinished(signpost.stop);
  const call = await account(signpost);
  const client = new pg.Client({ connectionString: signpost.databaseUrl });
  await client.connect();
  afterFile(() => client.end());
  const release = await holdSecondStep(client, 'codes');
  const posted = call('POST', '/batches', { rows }, { 'idempotency-key': 'one' });
  const created = async () => Number((await client.query('select count(*) as n from codes')).rows[0]?.n);
  // The core dies within the request's window, when some codes are created but not all.
  await expect.poll(created, { interval: 5 }).toBeGreaterThan(0);
  await signpost.cores[0]?.kill();
  expect((await posted).status).toBe(503);
  await release();
  await signpost.cores[0]?.restart();
  // The gateway reconnects within a second.
  const retry = () => call('POST', '/batches', { rows }, { 'idempotency-key': 'one' });
  let replayed = await retry();
  while (replayed.status === 503) replayed = await retry();
  expect([replayed.status, replayed.headers.get('idempotent-replay')]).toEqual([202, 'true']);
  const { data } = (await replayed.json()) as { data: Batch };
  expect(replayed.headers.get('location')).toBe(`/api/v1/batches/${data.id}`);
  for (let round = 0; round < 3; round++) {
    for (const core of signpost.cores) await core.restart();
  }
  await expectWhole(signpost, await completedBatch(call, data.id));
}, 150_000);

test('when a worker is killed, another one completes the batch while its request waits', async () => {
  const roles = ['rpc', 'relay,recorder,worker', 'relay,recorder,worker'];
  const signpost = await startSignpost({ cores: 3, roles, env: { BATCH_WINDOW_MS: '60000' } });
  onTestFinished(signpost.stop);
  const [, first, other] = signpost.cores as [Process, Process, Process];
  // Paused, so that the first one takes the job.
  process.kill(other.pid, 'SIGSTOP');
  const call = await account(signpost);
  const client = new pg.Client({ connectionString: signpost.databaseUrl });
  await client.connect();
  afterFile(() => client.end());
  const release = await holdSecondStep(client, 'codes');
  const posted = call('POST', '/batches', { rows });
  const created = async () => Number((await client.query('select count(*) as n from codes')).rows[0]?.n);
  await expect.poll(created, { interval: 5 }).toBeGreaterThan(0);
  await first.kill();
  expect(await created()).toBeLessThan(ROWS - ROWS / 100);
  await release();
  process.kill(other.pid, 'SIGCONT');
  const answer = await posted;
  const { data } = (await answer.json()) as { data: Batch };
  expect([answer.status, data.status]).toEqual([201, 'completed']);
  await expectWhole(signpost, data);
});

test('many concurrent batches leave connections for other requests: those without a window continue in the background', async () => {
  const signpost = await startSignpost({ env: { DATABASE_CONNECTIONS: '6' } });
  onTestFinished(signpost.stop);
  const calls = await Promise.all(Array.from({ length: 7 }, () => account(signpost)));
  // With a key a request holds a connection while it waits.
  const batches = Promise.all(calls.map((call) => call('POST', '/batches', { rows }, { 'idempotency-key': 'one' })));
  let finished = false;
  batches.finally(() => {
    finished = true;
  });
  const other = await account(signpost);
  const statuses = new Set<number>();
  for (let n = 0; n < 110 && !finished; n++) statuses.add((await other('GET', '/tags')).status);
  expect([...statuses]).toEqual([200]);
  expect((await batches).map(({ status }) => status)).toContain(202);
  for (const answer of await batches) {
    expect([201, 202]).toContain(answer.status);
    const { data } = (await answer.json()) as { data: Batch };
    expect((await completedBatch(calls[(await batches).indexOf(answer)] ?? other, data.id)).counts.created).toBe(
      ROWS - ROWS / 100,
    );
  }
});

test('a batch of a closed account creates nothing more', async () => {
  const signpost = await startSignpost({ env: { BATCH_WINDOW_MS: '5000' } });
  onTestFinished(signpost.stop);
  const { accountId, apiKey } = await signpost.createAccount({ plan: Plan.ENTERPRISE });
  const many = Array.from({ length: 25_000 }, () => ({ target_url: 'https://example.com' }));
  const posted = fetch(`${signpost.url}/api/v1/batches`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ rows: many }),
  });
  const client = new pg.Client({ connectionString: signpost.databaseUrl });
  await client.connect();
  afterFile(() => client.end());
  const count = async (where: string) =>
    Number((await client.query<{ n: string }>(`select count(*) as n from codes where ${where}`)).rows[0]?.n);
  await expect.poll(() => count('true'), { interval: 5 }).toBeGreaterThan(0);
  await internal(signpost, AccountsService, accountId).closeAccount({});
  const answer = await posted;
  const { data } = (await answer.json()) as { data: Batch };
  expect([answer.status, data.status]).toEqual([202, 'processing']);
  // A step that was running when the account was closed may end after the answer.
  await client.query('select from batches for update');
  const created = await count('true');
  expect(created).toBeGreaterThanOrEqual(data.counts.created);
  expect(created).toBeLessThan(25_000);
  await sleep(1_000);
  expect(await count('true')).toBe(created);
});

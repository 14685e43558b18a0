import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { freePort, LOOPBACK } from '../../local/free-port.ts';
import { freshDatabase } from '../harness/database.ts';
import { type Signpost, type SignpostOptions, startSignpost } from '../harness/processes.ts';
import { startTcpProxy } from '../harness/tcp-proxy.ts';
import { killWithChildren } from './visitors.ts';

/** Timeout of the failing gateway for its core, in ms. */
const TIMEOUT_MS = 2_000;
/** How long to wait for late effects, in ms. */
const SETTLES_MS = 1_500;
const FIRST = 'https://example.com/first';
const LATE = 'https://example.com/late';
const NEXT = 'https://example.com/next';

/** Two Signposts on one database: one that fails, of which some tests start their own, and one that keeps working. */
let databaseUrl: string;
let failing: Signpost;
let working: Signpost;
beforeAll(async () => {
  databaseUrl = (await freshDatabase()).url;
  working = await startSignpost({ databaseUrl });
  failing = await startFailing();
});

function startFailing({ env, gatewayEnv, ...options }: SignpostOptions = {}): Promise<Signpost> {
  return startSignpost({
    databaseUrl,
    ...options,
    // Few connections, so that calls also wait for one.
    env: { DATABASE_CONNECTIONS: '5', ...env },
    gatewayEnv: { CORE_TIMEOUT_MS: String(TIMEOUT_MS), ...gatewayEnv },
  });
}

interface Caller {
  create(fields?: Readonly<Record<string, unknown>>): Promise<CodeJson>;
  /** The status of a PATCH; undefined when the connection broke. */
  patch(through: Signpost, id: string, fields: Readonly<Record<string, unknown>>): Promise<number | undefined>;
  call(through: Signpost, method: string, path: string, init?: RequestInit): Promise<Response>;
  targetOf(id: string): Promise<string | undefined>;
}

/** Creates an account for one test, because each may make only 120 requests a minute. */
async function caller(): Promise<Caller> {
  const authorization = `Bearer ${(await working.createAccount()).apiKey}`;
  const call: Caller['call'] = ({ url }, method, path, init) =>
    fetch(`${url}/api/v1${path}`, { ...init, method, headers: { authorization, ...init?.headers } });
  return {
    call,
    async create(fields) {
      const response = await call(working, 'POST', '/qr-codes', {
        body: JSON.stringify({ target_url: FIRST, ...fields }),
      });
      expect(response.status).toBe(201);
      return ((await response.json()) as { data: CodeJson }).data;
    },
    async patch(through, id, fields) {
      const answer = call(through, 'PATCH', `/qr-codes/${id}`, { body: JSON.stringify(fields) });
      return (await answer.catch(() => undefined))?.status;
    },
    async targetOf(id) {
      const response = await call(working, 'GET', `/qr-codes/${id}`);
      return ((await response.json()) as { data: CodeJson }).data.target_url;
    },
  };
}

/** Blocks calls that name the folder, before they reach the code, until the returned function is called. */
async function holdFolder(name: string): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query('begin');
  const { rowCount } = await client.query('select from folders where name = $1 for update', [name]);
  expect(rowCount).toBe(1);
  return async () => {
    await client.query('rollback');
    await client.end();
  };
}

/** Suspends the core of the failing Signpost until the returned function is called, or the test ends. */
function suspendCore(): () => void {
  const [core] = failing.cores;
  if (!core) throw new Error('no core');
  process.kill(core.pid, 'SIGSTOP');
  const resume = () => void process.kill(core.pid, 'SIGCONT');
  onTestFinished(resume);
  return resume;
}

/** Waits until a call is blocked on the folder. */
async function expectWaiting(): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  const waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
  await expect.poll(async () => (await client.query(waiting)).rowCount).toBe(1);
  await client.end();
}

let folders = 0;

/** A caller with a code in a locked folder; `late`: the change of the blocked call. */
async function waitingCall() {
  const folder = `folder ${++folders}`;
  const own = await caller();
  const { id } = await own.create({ folder });
  const release = await holdFolder(folder);
  return { ...own, id, release, late: { target_url: LATE, folder } };
}

describe('a change that was answered with 503 is never applied later, over an acknowledged one', () => {
  test('while it waits for a lock', async () => {
    const { patch, targetOf, id, release, late } = await waitingCall();
    expect(await patch(failing, id, late)).toBe(503);
    expect(await patch(working, id, { target_url: NEXT })).toBe(200);
    await release();
    await sleep(SETTLES_MS);
    expect(await targetOf(id)).toBe(NEXT);
    // The connection terminated by Postgres is replaced.
    expect(await patch(failing, id, late)).toBe(200);
  });

  test('while its core is paused and resumed', async () => {
    let failed = 0;
    for (const delay of [2, 20, 60]) {
      const { create, patch, targetOf } = await caller();
      const codes: CodeJson[] = [];
      for (let code = 0; code < 24; code++) codes.push(await create());
      const answers = Promise.all(codes.map(({ id }) => patch(failing, id, { target_url: LATE })));
      await sleep(delay);
      const resume = suspendCore();
      const statuses = await answers;
      const expected = await Promise.all(
        codes.map(async ({ id }, index) => {
          if (statuses[index] === 200) return LATE;
          expect([statuses[index], await patch(working, id, { target_url: NEXT })]).toEqual([503, 200]);
          failed++;
          return NEXT;
        }),
      );
      resume();
      await sleep(SETTLES_MS);
      expect(await Promise.all(codes.map(({ id }) => targetOf(id)))).toEqual(expected);
    }
    expect(failed).toBeGreaterThan(0);
  });

  test('while its core is paused during the call', async () => {
    const { patch, targetOf, id, release, late } = await waitingCall();
    const answer = patch(failing, id, late);
    await expectWaiting();
    const resume = suspendCore();
    await release();
    expect(await answer).toBe(503);
    expect(await patch(working, id, { target_url: NEXT })).toBe(200);
    resume();
    await sleep(SETTLES_MS);
    expect(await targetOf(id)).toBe(NEXT);
  });

  test('while its bytes are on the way from the gateway to the core', async () => {
    const grpcPort = await freePort();
    const proxy = await startTcpProxy(`http://${LOOPBACK}:${grpcPort}`);
    const failing = await startFailing({
      env: { GRPC_PORT: String(grpcPort) },
      gatewayEnv: { CORE_ADDRESS: new URL(proxy.url).host },
    });
    const { create, patch, targetOf } = await caller();
    const { id } = await create();
    // The gateway is connected and knows the core's clock.
    expect(await patch(failing, id, { name: 'Menu' })).toBe(200);
    proxy.delay(TIMEOUT_MS + 1_000);
    const answer = patch(failing, id, { target_url: LATE });
    expect(await answer).toBe(503);
    expect(await patch(working, id, { target_url: NEXT })).toBe(200);
    await sleep(1_000 + SETTLES_MS);
    expect(await targetOf(id)).toBe(NEXT);
  });

  test('while the bytes between its core and Postgres are on the way', async () => {
    const proxy = await startTcpProxy(databaseUrl);
    const failing = await startFailing({ databaseUrl: proxy.url });
    const { patch, targetOf, id, release, late } = await waitingCall();
    const answer = patch(failing, id, late);
    await expectWaiting();
    proxy.hang();
    await release();
    expect(await answer).toBe(503);
    expect(await patch(working, id, { target_url: NEXT })).toBe(200);
    proxy.restore();
    await sleep(SETTLES_MS);
    expect(await targetOf(id)).toBe(NEXT);
  });

  test('after its gateway was killed, long before the core’s timeout', async () => {
    const failing = await startFailing({ gatewayEnv: { CORE_TIMEOUT_MS: '60000' } });
    const [gateway] = failing.gateways;
    if (!gateway) throw new Error('no gateway');
    const { patch, targetOf, id, release, late } = await waitingCall();
    const answer = patch(failing, id, late);
    await expectWaiting();
    await killWithChildren(gateway);
    expect(await answer).toBeUndefined();
    expect(await patch(working, id, { target_url: NEXT })).toBe(200);
    await release();
    await sleep(SETTLES_MS);
    expect(await targetOf(id)).toBe(NEXT);
  });
});

test('a create with an Idempotency-Key that was answered with 503 can be retried and creates one code', async () => {
  const { call, release, late } = await waitingCall();
  const total = async () => ((await (await call(working, 'GET', '/qr-codes')).json()) as { total: number }).total;
  const before = await total();
  const post = (through: Signpost) =>
    call(through, 'POST', '/qr-codes', { body: JSON.stringify(late), headers: { 'idempotency-key': 'one' } });
  expect((await post(failing)).status).toBe(503);
  await release();
  const again = await post(working);
  expect([again.status, again.headers.get('idempotent-replay')]).toEqual([201, 'false']);
  expect((await post(failing)).headers.get('idempotent-replay')).toBe('true');
  expect(await total()).toBe(before + 1);
});

test('the first change through a gateway, which does not know the core’s clock, costs one request', async () => {
  await failing.gateways[0]?.restart();
  const { call } = await caller();
  const first = await call(failing, 'POST', '/qr-codes', { body: JSON.stringify({ target_url: FIRST }) });
  expect([first.status, first.headers.get('x-ratelimit-remaining')]).toEqual([201, '49999']);
});

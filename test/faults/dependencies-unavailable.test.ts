import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, inject, onTestFailed, test } from 'vitest';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { type LocalPostgres, startPostgres } from '../../local/postgres.ts';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { afterFile } from '../harness/after-file.ts';
import { type Broker, startKafka } from '../harness/kafka.ts';
import { type Process, type Signpost, startSignpost } from '../harness/processes.ts';
import { expectCounted, killWithChildren, scanUrl, startVisitors, statusOf, type Visitors } from './visitors.ts';

const EVENTUALLY = { interval: 100 };

/** A Postgres, Kafka, core and gateway for this file, each of which a test may stop. */
let postgres: { start(): Promise<LocalPostgres>; stop(): Promise<void> };
let kafka: Broker;
let signpost: Signpost;
let core: Process;
let gateway: Process;
let authorization: string;
const noKafka = inject('kafkaBrokers') === null;

beforeAll(async () => {
  if (noKafka) return;
  const folder = await mkdtemp(join(tmpdir(), 'signpost-unavailable-'));
  afterFile(() => rm(folder, { recursive: true, force: true }));
  let running: LocalPostgres | undefined;
  postgres = {
    async start() {
      running ??= await startPostgres({ folder });
      return running;
    },
    async stop() {
      await running?.stop();
      running = undefined;
    },
  };
  afterFile(() => postgres.stop());
  const { url, gatewayUrl } = await postgres.start();
  kafka = await startKafka();
  afterFile(() => kafka.stop());
  signpost = await startSignpost({
    databaseUrl: url,
    gatewayDatabaseUrl: gatewayUrl,
    kafkaBrokers: kafka.brokers,
    env: { GATEWAY_WORKERS: '2' },
  });
  [core] = signpost.cores as [Process];
  [gateway] = signpost.gateways as [Process];
  authorization = `Bearer ${(await signpost.createAccount({ plan: Plan.ENTERPRISE })).apiKey}`;
});

/** Restores everything that a test has stopped. */
afterEach(async () => {
  if (noKafka) return;
  await setKafka('up');
  await postgres.start();
});

let kafkaState: 'up' | 'dead' | 'hanging' = 'up';

async function setKafka(state: typeof kafkaState): Promise<void> {
  if (kafkaState === 'dead') await kafka.start();
  if (kafkaState === 'hanging') kafka.resume();
  if (state === 'dead') await kafka.kill();
  if (state === 'hanging') kafka.pause();
  kafkaState = state;
}

async function create(): Promise<CodeJson> {
  const response = await fetch(`${signpost.url}/api/v1/qr-codes`, {
    method: 'POST',
    headers: { authorization },
    body: JSON.stringify({ target_url: 'https://example.com/menu' }),
  });
  expect(response.status).toBe(201);
  return ((await response.json()) as { data: CodeJson }).data;
}

async function degraded(): Promise<string[]> {
  const response = await fetch(`${signpost.url}/readyz`);
  expect(response.status).toBe(200);
  return ((await response.json()) as { degraded: string[] }).degraded;
}

/** Waits until the visitors have scanned this often, and expects only redirects. */
async function expectServed(visitors: Visitors, scans = 500): Promise<void> {
  const before = visitors.answered;
  await expect.poll(() => visitors.answered, EVENTUALLY).toBeGreaterThan(before + scans);
  expect([...visitors.others, ...visitors.failed]).toEqual([]);
}

describe.skipIf(noKafka)('printed codes resolve, and every scan is counted,', () => {
  test.each(['SIGSTOP', 'SIGKILL'] as const)(
    'while the core is unavailable after %s',
    async (signal) => {
      const code = await create();
      const visitors = startVisitors(scanUrl(signpost, code), 8);
      await expectServed(visitors);
      onTestFailed(() => core.restart());
      process.kill(core.pid, signal);
      await expectServed(visitors, 2_000);
      await expect.poll(degraded, EVENTUALLY).toContain('api');
      if (signal === 'SIGSTOP') process.kill(core.pid, 'SIGCONT');
      else await core.restart();
      await expect.poll(degraded, EVENTUALLY).toEqual([]);
      await visitors.stop();
      await expectCounted(signpost.databaseUrl, code, [visitors]);
    },
    120_000,
  );

  test('while Postgres is unavailable and after it is back', async () => {
    const code = await create();
    const visitors = startVisitors(scanUrl(signpost, code), 8);
    await expectServed(visitors);
    onTestFailed(() => core.restart());
    await postgres.stop();
    await expectServed(visitors, 2_000);
    // This code is unknown and cannot be looked up.
    expect(await statusOf(`${signpost.url}/r/zzzzzzz`)).toBe(503);
    await postgres.start();
    await expect.poll(() => statusOf(`${signpost.url}/r/zzzzzzz`), EVENTUALLY).toBe(404);
    await expectServed(visitors);
    await visitors.stop();
    // A core that has exited without its database must be restarted.
    await core.restart();
    await expectCounted(signpost.databaseUrl, code, [visitors]);
  });

  test.each(['dead', 'hanging'] as const)(
    'while Kafka is %s, even if the gateway restarts',
    async (state) => {
      const code = await create();
      const visitors = startVisitors(scanUrl(signpost, code), 8);
      await expectServed(visitors);
      await setKafka(state);
      await expectServed(visitors, 2_000);
      await expect.poll(degraded, EVENTUALLY).toEqual(['log', 'shipping']);
      await visitors.stop();

      onTestFailed(() => gateway.restart());
      await killWithChildren(gateway);
      await gateway.restart();
      const later = startVisitors(scanUrl(signpost, code), 8);
      await expectServed(later);
      await setKafka('up');
      await expectServed(later);
      await later.stop();
      await expect.poll(degraded, EVENTUALLY).toEqual([]);
      await expectCounted(signpost.databaseUrl, code, [visitors, later]);
    },
    120_000,
  );

  test('while all three are unavailable and the gateway starts from its disk alone', async () => {
    const code = await create();
    expect(await statusOf(scanUrl(signpost, code))).toBe(302);
    onTestFailed(async () => {
      await core.restart();
      await gateway.restart();
    });
    await killWithChildren(gateway);
    await core.kill();
    await setKafka('dead');
    await postgres.stop();

    await gateway.restart();
    const visitors = startVisitors(scanUrl(signpost, code), 8);
    await expectServed(visitors, 2_000);
    await expect.poll(degraded, EVENTUALLY).toEqual(['api', 'log', 'shipping']);
    await gateway.restart();
    await visitors.stop();
    const later = startVisitors(scanUrl(signpost, code), 8);
    await expectServed(later);
    await later.stop();

    await postgres.start();
    await setKafka('up');
    await core.restart();
    await expect.poll(degraded, EVENTUALLY).toEqual([]);
    const first: Pick<Visitors, 'sent' | 'answered'> = { sent: 1, answered: 1 };
    await expectCounted(signpost.databaseUrl, code, [first, visitors, later]);
  });
});

/**
 * How soon changes are published, how fast webhooks are delivered, and how 25,000 events at once affect scans.
 *
 *   npm run bench:events                  all parts
 *   npm run bench:events -- latency       one of latency, deliveries, batch
 *
 * Starts a Postgres with the settings of a local run, cores with all roles, a gateway and, for the latency over Kafka,
 * an Apache Kafka. Latencies are measured from the event's own time, which is read within the transaction, so they
 * include the commit. Receivers and load run in this process and share the machine with everything else.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '@connectrpc/connect';
import pg from 'pg';
import { pino } from 'pino';
import { encodeId, newUuid } from '../../common/contract/ids.ts';
import { openLog } from '../../common/log/open.ts';
import { EVENTS } from '../../common/log/topics.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { WebhooksService } from '../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { cloudEvent } from '../../src/events/cloud-event.ts';
import { addToOutbox } from '../../src/events/outbox.ts';
import { startKafka } from '../harness/kafka.ts';
import { type Platform, startPlatform } from './platform.ts';

const CHANGES_A_SECOND = 200;
const SECONDS = 20;
const WARM_UP_S = 5;
const EVENTS_EACH = 2_000;
const ROUNDS = 3;
const BATCH = 25_000;
const PROBE_MS = 10;

const PRIVATE = { WEBHOOKS_ALLOW_PRIVATE: 'true' };
const requestedParts = process.argv.slice(2);
const isRequested = (part: string) => requestedParts.length === 0 || requestedParts.includes(part);
if (isRequested('latency')) await latencies();
if (isRequested('deliveries')) await deliveries();
if (isRequested('batch')) await batchOfEvents();
process.exit();

/** Latencies from the change to a consumer of the topic, and to a webhook's receiver, at 200 changes a second. */
async function latencies(): Promise<void> {
  console.log(`${CHANGES_A_SECOND} changes a second, from the change to …`);
  console.log('| log | consumer p50 | p99 | webhook p50 | p99 | changes |\n| --- | --- | --- | --- | --- | --- |');
  await latency('Postgres', []);
  const kafka = await startKafka();
  try {
    await latency('Kafka', [kafka.brokers]);
  } finally {
    await kafka.stop();
  }
}

async function latency(name: string, kafkaBrokers: string[]): Promise<void> {
  await using platform = await startPlatform({ ...PRIVATE, KAFKA_BROKERS: kafkaBrokers.join(',') });
  const receiver = await startReceiver();
  const { accountId } = await platform.newAccount();
  await addEndpoint(platform, accountId, receiver.url, ['qr.updated']);
  receiver.begin();
  const codes = createClient(CodesService, platform.transportFor(accountId));
  const ids = await Promise.all(
    Array.from(
      { length: 50 },
      async () => (await codes.createCode({ targetUrl: 'https://example.com' })).code?.id ?? '',
    ),
  );
  const log = await openLog({
    kafkaBrokers,
    databaseUrl: platform.databaseUrl,
    clientId: 'signpost-bench',
    logger: pino({ level: 'silent' }),
  });
  const read: number[] = [];
  log.follow({
    topic: EVENTS.name,
    from: await log.ends(EVENTS.name),
    handle(records) {
      for (const { headers } of records) read.push(Date.now() - Date.parse(headers.ce_time ?? ''));
    },
  });
  await sleep(3_000);
  const changes: Promise<unknown>[] = [];
  const change = async (seconds: number) => {
    const start = performance.now();
    for (let n = 0; n < seconds * CHANGES_A_SECOND; n++) {
      await sleep(Math.max(0, start + (n * 1_000) / CHANGES_A_SECOND - performance.now()));
      const id = ids[n % ids.length] ?? '';
      changes.push(codes.updateCode({ id, updateMask: { paths: ['name'] }, name: `Table ${newUuid()}` }));
    }
    await Promise.all(changes.splice(0));
    await sleep(1_000);
  };
  await change(WARM_UP_S);
  read.length = 0;
  receiver.latencies.length = 0;
  await change(SECONDS);
  await log.close();
  const cells = [read, receiver.latencies].flatMap((times) => [at(times, 0.5), at(times, 0.99)]);
  const total = SECONDS * CHANGES_A_SECOND;
  console.log(
    `| ${name} | ${cells.map((ms) => `${ms} ms`).join(' | ')} | ${receiver.latencies.length} of ${total} received |`,
  );
  receiver.stop();
}

/** Deliveries per second to nine endpoints, while the tenth answers, and while it hangs. */
async function deliveries(): Promise<void> {
  console.log(`\n${EVENTS_EACH} events to each of ten endpoints:`);
  console.log('| tenth endpoint | deliveries a second to the nine | the slowest of the nine | twice |');
  console.log('| --- | --- | --- | --- |');
  await using platform = await startPlatform(PRIVATE);
  const pool = new pg.Pool({ connectionString: platform.databaseUrl, max: 2 });
  const rounds = { answers: [] as Round[], hangs: [] as Round[] };
  for (let round = 0; round <= ROUNDS; round++) {
    for (const tenth of ['answers', 'hangs'] as const) rounds[tenth].push(await deliverTo(platform, pool, tenth));
  }
  for (const tenth of ['answers', 'hangs'] as const) {
    // The first round warms up.
    const counted = rounds[tenth].slice(1);
    const median = (key: 'rate' | 'slowest') =>
      at(
        counted.map((each) => each[key]),
        0.5,
      ).toFixed(0);
    const twice = counted.reduce((sum, each) => sum + each.twice, 0);
    console.log(`| ${tenth} | ${median('rate')} | ${median('slowest')} a second | ${twice} |`);
  }
  await pool.end();
}

interface Round {
  /** Deliveries per second to the nine. */
  readonly rate: number;
  /** Deliveries per second to the slowest of them. */
  readonly slowest: number;
  readonly twice: number;
}

async function deliverTo(platform: Platform, pool: pg.Pool, tenth: 'answers' | 'hangs'): Promise<Round> {
  const { accountId } = await platform.newAccount();
  const receiver = await startReceiver((path) => tenth === 'answers' || path !== '/9');
  const webhooks = createClient(WebhooksService, platform.transportFor(accountId));
  for (let n = 0; n < 10; n++) await addEndpoint(platform, accountId, `${receiver.url}/${n}`, ['qr.created']);
  receiver.begin();
  const start = performance.now();
  const events = Array.from({ length: EVENTS_EACH }, () => {
    const subject = encodeId('qr', newUuid());
    // As large as events of codes.
    const data = { id: subject, padding: 'x'.repeat(600) };
    return cloudEvent({ type: 'qr.created', accountId, subject, at: Date.now(), data });
  });
  await addToOutbox(pool, events);
  const nine = Array.from({ length: 9 }, (_, n) => `/${n}`);
  const counts = () => nine.map((path) => receiver.ids.get(path)?.size ?? 0);
  const finished = new Map<number, number>();
  while (finished.size < nine.length) {
    await sleep(2);
    for (const [n, count] of counts().entries()) {
      if (count === EVENTS_EACH && !finished.has(n)) finished.set(n, performance.now() - start);
    }
  }
  const last = Math.max(...finished.values()) / 1_000;
  const { twice } = receiver;
  // Hanging deliveries would continue in the next round.
  for (const { id } of (await webhooks.listEndpoints({})).endpoints) await webhooks.deleteEndpoint({ id });
  receiver.stop();
  await sleep(2_000);
  return { rate: (9 * EVENTS_EACH) / last, slowest: EVENTS_EACH / last, twice };
}

/** One batch of 25,000 codes: every event is delivered once, and scans continue. */
async function batchOfEvents(): Promise<void> {
  await using platform = await startPlatform(PRIVATE);
  const receiver = await startReceiver();
  const { accountId, apiKey } = await platform.newAccount();
  await addEndpoint(platform, accountId, receiver.url, ['qr.created', 'bulk.completed']);
  receiver.begin();
  const post = (path: string, body: unknown) =>
    fetch(`${platform.url}/api/v1${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}` },
      body: JSON.stringify(body),
    });
  const made = (await (await post('/qr-codes', { target_url: 'https://example.com' })).json()) as {
    data: { scan_url: string };
  };
  const scan = async (times: number[], until: () => boolean) => {
    while (!until()) {
      const start = performance.now();
      await (await fetch(made.data.scan_url, { redirect: 'manual' })).arrayBuffer();
      times.push(performance.now() - start);
      await sleep(PROBE_MS);
    }
  };
  const idle: number[] = [];
  const busy: number[] = [];
  const idleUntil = performance.now() + 10_000;
  await scan(idle, () => performance.now() > idleUntil);
  const received = () => receiver.ids.get('/')?.size ?? 0;
  // The events of the scanned code, of the batch, and of its codes.
  const expected = 1 + 1 + BATCH;
  const start = performance.now();
  const rows = Array.from({ length: BATCH }, (_, n) => ({ target_url: `https://example.com/menu?table=${n}` }));
  const answered = post('/batches', { rows }).then(() => performance.now() - start);
  await scan(busy, () => received() >= expected || performance.now() - start > 300_000);
  const took = performance.now() - start;
  await sleep(3_000);
  console.log(
    `\nA batch of ${BATCH}: answered in ${((await answered) / 1_000).toFixed(1)} s; ${received()} of ${expected} events received in ${(took / 1_000).toFixed(1)} s, ${receiver.twice} twice.`,
  );
  console.log('| scans | p50 | p99 | made |\n| --- | --- | --- | --- |');
  for (const [name, times] of Object.entries({ idle, meanwhile: busy })) {
    console.log(`| ${name} | ${at(times, 0.5).toFixed(1)} ms | ${at(times, 0.99).toFixed(1)} ms | ${times.length} |`);
  }
  receiver.stop();
}

/** Adds an endpoint and waits until it has answered its test event. */
async function addEndpoint(platform: Platform, accountId: string, url: string, events: string[]): Promise<void> {
  const webhooks = createClient(WebhooksService, platform.transportFor(accountId));
  const { endpoint } = await webhooks.createEndpoint({ url, events });
  for (;;) {
    const { endpoints } = await webhooks.listEndpoints({});
    if (endpoints.find(({ id }) => id === endpoint?.id)?.verifiedAt) return;
    await sleep(20);
  }
}

/**
 * Starts a webhook receiver. It answers 204 at once, but after `begin` only on paths for which `answers` returns true.
 * From `begin` on it records the ids received on each path, and their latencies.
 */
async function startReceiver(answers: (path: string) => boolean = () => true) {
  const ids = new Map<string, Set<string>>();
  const latencies: number[] = [];
  let begun = false;
  const begin = () => {
    begun = true;
    ids.clear();
    latencies.length = 0;
  };
  const receiver = { url: '', ids, latencies, twice: 0, begin, stop: () => server.closeAllConnections() };
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (chunk: string) => (body += chunk));
    request.on('end', () => {
      latencies.push(Date.now() - Date.parse(/"timestamp":"([^"]+)"/.exec(body)?.[1] ?? ''));
      const seen = ids.get(path) ?? new Set();
      ids.set(path, seen);
      const id = String(request.headers['webhook-id']);
      if (seen.has(id)) receiver.twice++;
      seen.add(id);
      if (!begun || answers(path)) response.writeHead(204).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return receiver;
}

function at(times: readonly number[], share: number): number {
  return times.toSorted((one, other) => one - other)[Math.floor(times.length * share)] ?? 0;
}

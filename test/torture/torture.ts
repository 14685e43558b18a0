import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { pino } from 'pino';
import { openKafkaLog } from '../../common/log/kafka.ts';
import { readTopic } from '../../common/log/read-topic.ts';
import { EVENTS } from '../../common/log/topics.ts';
import { randomFrom } from '../../local/sample/random.ts';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { ApiClient } from './api-load.ts';
import { auditChanges } from './audit-changes.ts';
import { auditScans } from './audit-scans.ts';
import { startEventConsumer, startWebhookReceiver } from './event-receivers.ts';
import { FAULTS } from './faults.ts';
import { Ledger, type TortureAccount } from './ledger.ts';
import { type Platform, startPlatform } from './platform.ts';
import { whyNoPowerCuts } from './power-cut.ts';
import { watchRecovery } from './recovery.ts';
import { scanClient } from './scan-load.ts';
import { type Injection, schedule } from './schedule.ts';
import { settle } from './settle.ts';
import { resultTable } from './table.ts';

export interface TortureOptions {
  /** How long faults are injected; starting, settling and the audit take additional time. */
  readonly minutes: number;
  readonly seed: number;
  /** Names of the faults to choose from; all if empty. */
  readonly only?: readonly string[];
  /** Called with each line about the progress. */
  logProgress(line: string): void;
}

export interface TortureResult {
  /** No findings except `documented` ones, no accidents, and no unstructured output. */
  readonly passed: boolean;
  /** For people: the table, the findings, and unexpected behaviour of processes. */
  readonly report: string;
}

const SCAN_CLIENTS = 8;
const API_CLIENTS = 4;
/** An account may make 120 requests a minute. */
const ACCOUNTS_PER_CLIENT = 8;
const INITIAL_CODES = 15;
const PROBE_CODES = 16;
const EVENT_TYPES = ['qr.created', 'qr.updated', 'qr.archived', 'bulk.completed'];
/** Load without a fault before the first one, and after each recovery, in ms. */
const QUIET_MS = 1_500;
/** The maximum number of findings that are printed. */
const MAX_PRINTED = 40;

/** Starts a platform, loads it, injects faults, lets it settle, and audits everything that it acknowledged. */
export async function torture({ minutes, seed, only = [], logProgress }: TortureOptions): Promise<TortureResult> {
  const noPowerCuts = await whyNoPowerCuts();
  if (noPowerCuts !== undefined) logProgress(`${noPowerCuts} Faults that need such disks are omitted.`);
  const faults = FAULTS.filter(
    ({ name, needsDisks }) => (only.length === 0 || only.includes(name)) && !(needsDisks && noPowerCuts !== undefined),
  );
  if (faults.length === 0) throw new Error('There is no fault left to inject.');
  await using running = new AsyncDisposableStack();
  const platform = running.use(await startPlatform({ powerCuts: noPowerCuts === undefined }));
  logProgress('everything has started');
  // The audit reads without a proxy; its connections break when Postgres fails.
  const pool = new pg.Pool({ connectionString: platform.postgres.url, max: 4 });
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  running.defer(() => pool.end());
  const webhooks = running.use(await startWebhookReceiver());
  const events = running.use(await startEventConsumer(platform.kafka.direct));
  const newAccounts = (count: number) =>
    Promise.all(Array.from({ length: count }, () => newAccount(platform, webhooks.url)));

  const ledger = new Ledger();
  const random = randomFrom(seed);
  const accounts: TortureAccount[] = [];
  const clients: ApiClient[] = [];
  const quiet = ledger.open('none, at first');
  for (let client = 0; client < API_CLIENTS; client++) {
    const own = await newAccounts(ACCOUNTS_PER_CLIENT);
    accounts.push(...own);
    const each = new ApiClient(client, {
      platform,
      ledger,
      random: randomFrom(random.between(0, 2 ** 31)),
      accounts: own,
    });
    for (let code = 0; code < INITIAL_CODES; code++) await each.create(true);
    clients.push(each);
  }
  const probes = new Ledger();
  const probeAccounts = await newAccounts(PROBE_CODES);
  const prober = new ApiClient(API_CLIENTS, { platform, ledger: probes, random, accounts: probeAccounts });
  for (let code = 0; code < PROBE_CODES; code++) await prober.create(true);
  const recovery = watchRecovery({ platform, codes: probes.codes, receivers: [webhooks, events], pool });
  quiet.recoveredMs = await recovery.measure();
  logProgress(`without a fault, changes and scans arrive within ${quiet.recoveredMs} ms`);

  let isRunning = true;
  const load = [
    ...clients.map((client) => client.run(() => isRunning)),
    ...Array.from({ length: SCAN_CLIENTS }, (_, client) =>
      scanClient(client, {
        platform,
        ledger,
        random: randomFrom(random.between(0, 2 ** 31)),
        isRunning: () => isRunning,
      }),
    ),
  ];
  const end = Date.now() + minutes * 60_000;
  for (const injection of schedule(seed, faults)) {
    await sleep(QUIET_MS);
    if (Date.now() >= end) break;
    const window = ledger.open(injection.name);
    const revertedMs = await inject(injection, { platform, ledger });
    window.recoveredMs = await recovery.measure();
    if (window.recoveredMs === undefined) ledger.find('wrong', Date.now(), `no recovery from ${injection.name}`);
    logProgress(
      `${injection.name}: ${seconds(injection)}, reverted in ${revertedMs} ms, recovered in ${window.recoveredMs} ms`,
    );
  }
  isRunning = false;
  await Promise.all(load);
  logProgress('the load has ended');
  const unsettled = await settle(platform, pool, logProgress);
  if (unsettled !== undefined) ledger.find('wrong', Date.now(), `the platform has not settled: ${unsettled}`);
  logProgress('settled; now the audit');

  const onTopic = new Set([...events.ids.keys(), ...(await idsOnTopic(platform))]);
  const allAccounts = [...accounts, ...probeAccounts];
  const shown = await auditChanges({ platform, ledger, pool, accounts: allAccounts, onTopic, webhooks });
  const scans = await auditScans({ platform, ledger, pool, accounts, shown });
  const kept = (await platform.operator(['events', 'audit'])) as Record<'events' | 'routes', { missing: number }>;
  for (const topic of ['events', 'routes'] as const) {
    const { missing } = kept[topic];
    if (missing > 0) ledger.find('lost', Date.now(), `events audit: ${missing} ${topic} missing`);
  }
  const unstructured = await platform.unstructured();
  const failures = ledger.findings.filter(({ kind }) => kind !== 'documented');
  const passed = failures.length === 0 && platform.accidents.length === 0 && unstructured.length === 0;
  const { differences, ...figures } = scans;
  return {
    passed,
    report: [
      resultTable(ledger),
      `scans audit: ${JSON.stringify(figures)}; events audit: ${JSON.stringify(kept)}`,
      `webhooks: ${[...webhooks.ids.values()].reduce((sum, each) => sum + each, 0)} calls of ${webhooks.ids.size} events; ` +
        `events consumer: ${[...events.ids.values()].reduce((sum, each) => sum + each, 0)} records of ${events.ids.size} events`,
      ...failures.slice(0, MAX_PRINTED).map(({ kind, at, what }) => {
        return `${kind}: ${what} (${new Date(at).toISOString()}, ${ledger.windowAt(at)?.fault})`;
      }),
      ...ledger.longWaits.slice(0, MAX_PRINTED).map(({ what, startedAt, endedAt }) => {
        const during = [startedAt, endedAt].map(
          (at) => `${new Date(at).toISOString()} (${ledger.windowAt(at)?.fault})`,
        );
        return `waited ${((endedAt - startedAt) / 1_000).toFixed(1)} s: ${what}, from ${during.join(' to ')}`;
      }),
      ...platform.accidents.map(
        ({ process, at, how }) => `accident: ${process} (${new Date(at).toISOString()}): ${how}`,
      ),
      ...unstructured.slice(0, MAX_PRINTED).map((line) => `unstructured: ${line}`),
      `${passed ? 'passed' : 'FAILED'}: seed ${seed}, ${minutes} min, ${failures.length} findings`,
    ].join('\n'),
  };
}

async function newAccount(platform: Platform, url: string): Promise<TortureAccount> {
  const created = await (await platform.core()).accounts.createAccount({ name: 'Torture', plan: Plan.ENTERPRISE });
  const account = { id: created.account?.id ?? '', apiKey: created.apiKey };
  await (await platform.core(account.id)).webhooks.createEndpoint({ url, events: EVENT_TYPES });
  return account;
}

/** Injects faults, reverts each after its duration, and returns the longest time that a reversal took, in ms. */
async function inject(
  { faults, apartMs }: Injection,
  { platform, ledger }: { platform: Platform; ledger: Ledger },
): Promise<number> {
  const reverted = await Promise.all(
    faults.map(async ({ fault, seconds, random }, index) => {
      await sleep(index * apartMs);
      let since = Date.now();
      try {
        const heal = await fault.inject({ platform, ledger, random });
        await sleep(seconds * 1_000);
        since = Date.now();
        await heal?.();
      } catch (error) {
        ledger.find('wrong', Date.now(), `${fault.name} could not be injected or reverted: ${error}`);
      }
      return Date.now() - since;
    }),
  );
  return Math.max(...reverted);
}

function seconds({ faults }: Injection): string {
  return `${faults.map((each) => each.seconds).join(' + ')} s`;
}

/** Ids of all events on the topic. */
async function idsOnTopic(platform: Platform): Promise<string[]> {
  const brokers = platform.kafka.direct.split(',');
  const log = openKafkaLog({ brokers, clientId: 'torture', logger: pino({ level: 'silent' }) });
  try {
    const ids: string[] = [];
    const options = { topic: EVENTS.name, from: new Map(), ends: await log.ends(EVENTS.name) };
    await readTopic(log, { ...options, signal: AbortSignal.timeout(120_000) }, async (records) => {
      for (const { headers } of records) ids.push(headers.ce_id ?? '');
    });
    return ids;
  } finally {
    await log.close();
  }
}

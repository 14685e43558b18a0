/**
 * How fast one gateway worker answers scans, beside `node:http` and nginx answering a constant redirect.
 *
 *   npm run bench:scan [-- codes seconds]      1,000,000 codes and 3 seconds a round unless told
 *
 * Starts everything itself: a Postgres, a Kafka where Java and Maven are there (else the log in Postgres), the gateway
 * with its route table on disk, spool and shipping on. What answers scans has the first core for itself; the load and
 * everything else share the others. Rounds are interleaved, figures are medians. The most requests a second are wrk's
 * where it is installed; latencies are at half of the subject's own maximum, by `load.ts`. Requests are a phone's, for
 * codes drawn at random.
 */
import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { create } from '@bufbuild/protobuf';
import { pino } from 'pino';
import { openRouteTable } from '../../gateway/redirect/route-table.ts';
import { type Child, startChild } from '../../local/child.ts';
import { freePort, LOOPBACK } from '../../local/free-port.ts';
import { startPostgres } from '../../local/postgres.ts';
import { Answer, RouteSchema } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import { newShortCode } from '../../src/codes/short-code.ts';
import { encodeId, newUuid } from '../../src/contract/ids.ts';
import { openDatabase } from '../../src/db/database.ts';
import { openLog } from '../../src/events/log/open.ts';
import { TOPICS } from '../../src/events/log/topics.ts';
import { kafkaForTests } from '../harness/kafka.ts';
import type { Measured } from './load.ts';
import { requestHead } from './phone.ts';

const [CODES, SECONDS] = [Number(process.argv[2] ?? 1_000_000), Number(process.argv[3] ?? 3)];
const CONNECTIONS = 64;
const ROUNDS = 9;
const COLD_STARTS = 3;
const MIB = 1024 * 1024;
const run = promisify(execFile);

const folder = await mkdtemp(join(tmpdir(), 'signpost-bench-'));
await using running = new AsyncDisposableStack();
running.defer(() => rm(folder, { recursive: true, force: true }));
const pinned = availableParallelism() > 1 && isInstalled('taskset');
if (pinned) pin(process.pid, `1-${availableParallelism() - 1}`);
const wrk = isInstalled('wrk') ? await wrkScript() : undefined;

const postgres = await startPostgres({ folder: join(folder, 'postgres') });
running.defer(() => postgres.stop());
const database = await openDatabase(postgres.url, 2);
await database.migrate();
await database.close();
const kafka = await kafkaForTests();
running.defer(() => kafka?.stop());
const logger = pino({ level: 'warn' });
const log = openLog({
  kafkaBrokers: kafka ? [kafka.brokers] : [],
  databaseUrl: postgres.url,
  clientId: 'bench',
  logger,
});
await log.ensureTopics(TOPICS);
await log.close();
const codes = join(folder, 'codes');
await fillTable();

/** What answers, by name: the port it answers on. */
const subjects = new Map<string, number>();
const port = await freePort();
subjects.set('gateway, one worker', port);
const starts: number[] = [];
let gateway = await startGateway();
for (let start = 1; start < COLD_STARTS; start++) {
  await gateway.stop();
  gateway = await startGateway();
}
running.defer(() => gateway.stop());
subjects.set('node:http, constant', await startConstant());
const nginx = isInstalled('nginx') ? await startNginx() : undefined;
if (nginx) subjects.set('nginx, constant', nginx);

const fastest = new Map<string, Measured[]>([...subjects.keys()].map((name) => [name, []]));
const halfway = new Map<string, Measured[]>([...subjects.keys()].map((name) => [name, []]));
for (let round = 0; round <= ROUNDS; round++) {
  for (const [name, at] of subjects) {
    const measured = await mostOf(at);
    // The first round warms up.
    if (round > 0) fastest.get(name)?.push(measured);
  }
}
const memory = await memoryOf(await worker(gateway));
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, at] of subjects) halfway.get(name)?.push(await load(at, median(fastest.get(name), 'rate') / 2));
}

const baseline = median(fastest.get('node:http, constant'), 'rate');
console.log(`| ${CODES.toLocaleString('en')} codes | requests /s | of node:http | p50 at half | p99 at half |`);
console.log('| --- | --- | --- | --- | --- |');
for (const name of subjects.keys()) {
  const rate = median(fastest.get(name), 'rate');
  const [p50, p99] = [median(halfway.get(name), 'p50'), median(halfway.get(name), 'p99')];
  const cells = [
    name,
    Math.round(rate).toLocaleString('en'),
    (rate / baseline).toFixed(2),
    ...[p50, p99].map((ms) => `${ms.toFixed(2)} ms`),
  ];
  console.log(`| ${cells.join(' | ')} |`);
}
const wrong = [...fastest.values(), ...halfway.values()].flat().reduce((sum, each) => sum + each.wrong, 0);
console.log(`
start with the table on disk: ${median(starts)} ms (from the start of the process until it is ready)
memory of the worker: ${memory}
answers that were no redirect: ${wrong}
load: ${wrk ? 'wrk' : 'load.ts'}, ${CONNECTIONS} connections; ${pinned ? 'the subject alone on one core' : 'not pinned'}; log: ${kafka ? 'Kafka' : 'Postgres'}`);
const drained = performance.now();
const shipped = await everythingShipped();
console.log(
  `scans shipped: ${shipped}, the last ${((performance.now() - drained) / 1_000).toFixed(0)} s after the load`,
);

/** Codes as they are printed, in a file for the load and in a route table for the gateway. */
async function fillTable(): Promise<void> {
  const shortCodes = Array.from({ length: CODES }, newShortCode);
  await writeFile(codes, shortCodes.join('\n'));
  const table = openRouteTable(join(folder, 'gateway', 'routes'), logger);
  const accountId = encodeId('acct', newUuid());
  for (let at = 0; at < CODES; at += 10_000) {
    const routes = shortCodes.slice(at, at + 10_000).map((shortCode) => {
      const targetUrl = `https://example.com/menu?table=${shortCode}`;
      const value = { shortCode, codeId: encodeId('qr', newUuid()), accountId, answer: Answer.REDIRECT, targetUrl };
      return create(RouteSchema, { version: 1n, entry: { case: 'code', value } });
    });
    table.advance(routes, { partition: 0, next: 0n });
  }
  await table.close();
}

async function startGateway(): Promise<Child> {
  const start = performance.now();
  const child = await startChild({
    name: 'gateway',
    program: 'gateway/main.ts',
    log: join(folder, 'gateway.log'),
    env: {
      PATH: process.env.PATH,
      PORT: String(port),
      DATA_DIR: join(folder, 'gateway'),
      DATABASE_URL: postgres.gatewayUrl,
      KAFKA_BROKERS: kafka?.brokers,
      GATEWAY_WORKERS: '1',
      LOG_LEVEL: 'warn',
    },
  });
  starts.push(Math.round(performance.now() - start));
  pin(await worker(child), '0');
  return child;
}

/** The process that answers scans. */
async function worker({ pid }: Child): Promise<number> {
  const { stdout } = await run('pgrep', ['-P', String(pid), '-f', 'gateway/worker.ts']);
  return Number(stdout);
}

async function startConstant(): Promise<number> {
  const at = await freePort();
  const child = spawn(process.execPath, [join(import.meta.dirname, 'constant.ts'), String(at)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  running.defer(() => void child.kill());
  await once(child, 'message');
  pin(child.pid, '0');
  return at;
}

async function startNginx(): Promise<number> {
  const at = await freePort();
  const config = join(folder, 'nginx.conf');
  await writeFile(
    config,
    `daemon off; worker_processes 1; pid ${join(folder, 'nginx.pid')}; error_log stderr crit;
events { worker_connections 1024; }
http {
  access_log off; keepalive_requests 1000000000;
  server {
    listen ${LOOPBACK}:${at};
    location / { add_header cache-control no-store always; return 302 https://example.com/menu?table=4; }
  }
}`,
  );
  const child = spawn('nginx', ['-p', folder, '-c', config], { stdio: ['ignore', 'inherit', 'inherit'] });
  running.defer(() => void child.kill());
  pin(child.pid, '0');
  await sleep(500);
  return at;
}

/** As many requests as go. */
async function mostOf(at: number): Promise<Measured> {
  if (wrk === undefined) return load(at);
  const { stdout } = await run('wrk', [
    ...['-t1', `-c${CONNECTIONS}`, `-d${SECONDS}s`, '-s', wrk],
    `http://${LOOPBACK}:${at}/`,
  ]);
  return JSON.parse(/^\{.*\}$/m.exec(stdout)?.[0] ?? '') as Measured;
}

async function load(at: number, rate?: number): Promise<Measured> {
  const options = { port: at, connections: CONNECTIONS, seconds: SECONDS, rate, codes };
  const { stdout } = await run(process.execPath, [join(import.meta.dirname, 'load.ts'), JSON.stringify(options)]);
  return JSON.parse(stdout) as Measured;
}

async function wrkScript(): Promise<string> {
  const script = join(folder, 'load.lua');
  const [start = '', end = ''] = requestHead('CODE').split('CODE');
  await writeFile(
    script,
    `local codes, count, wrong = {}, 0, 0
function init()
  math.randomseed(os.time())
  for code in io.lines(${JSON.stringify(join(folder, 'codes'))}) do count = count + 1; codes[count] = code end
end
function request() return ${lua(start)} .. codes[math.random(count)] .. ${lua(end)} end
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format('{"rate":%f,"p50":%f,"p99":%f,"wrong":%d}\\n', summary.requests / summary.duration * 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
`,
  );
  return script;
}

function lua(text: string): string {
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\r', '\\r').replaceAll('\n', '\\n')}"`;
}

async function memoryOf(pid: number): Promise<string> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  const mib = (name: string) => Math.round((Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) * 1024) / MIB);
  return `${mib('VmRSS')} MiB resident, ${mib('RssAnon')} of them its own and the rest pages of the table and of programs`;
}

/** Waits until the spool is empty; gives how many scans went to the log. */
async function everythingShipped(): Promise<number> {
  for (let last = -1; ; ) {
    const response = await fetch(`http://${LOOPBACK}:${port}/readyz`);
    const { scans } = (await response.json()) as { scans: { shipped: number } };
    if (scans.shipped === last) return last;
    last = scans.shipped;
    await sleep(5_000);
  }
}

function median(measured: readonly number[]): number;
function median(measured: readonly Measured[] | undefined, key: 'rate' | 'p50' | 'p99'): number;
function median(measured: readonly (number | Measured)[] = [], key?: 'rate' | 'p50' | 'p99'): number {
  const values = measured.map((each) => (typeof each === 'number' ? each : each[key ?? 'rate']));
  return values.toSorted((one, other) => one - other)[values.length >> 1] ?? Number.NaN;
}

function pin(pid: number | undefined, cores: string): void {
  if (pinned && pid !== undefined) execFileSync('taskset', ['-acp', cores, String(pid)], { stdio: 'ignore' });
}

function isInstalled(program: string): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

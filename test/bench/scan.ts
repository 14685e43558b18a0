/**
 * How fast one gateway worker answers scans, compared with `node:http` and nginx answering with a constant redirect.
 *
 *   npm run bench:scan [-- codes seconds]      default: 1,000,000 codes and 3 seconds a round
 *
 * Then a worker with metrics, which are scraped every second, is compared with one without, in turns of without, with, with,
 * without.
 *
 * Starts everything itself: a Postgres, a Kafka if Java and Maven are installed (else the log is in Postgres), and the
 * gateway with its route table on disk, spool and shipping enabled. The subject has the first CPU core for itself; the load,
 * which has priority, and everything else share the others. Rounds are interleaved, figures are medians. The maximum of
 * requests per second is measured by wrk if that is installed; latencies are measured at half of the subject's own maximum,
 * by `load.ts`. Requests are those of a phone, for codes in random order. With wrk, requests with a new connection each are
 * measured too.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { create } from '@bufbuild/protobuf';
import { pino } from 'pino';
import { encodeId, newUuid } from '../../common/contract/ids.ts';
import { openLog } from '../../common/log/open.ts';
import { TOPICS } from '../../common/log/topics.ts';
import { openRouteTable } from '../../gateway/redirect/routes/route-table.ts';
import { freePort, LOOPBACK } from '../../local/free-port.ts';
import { startPostgres } from '../../local/postgres.ts';
import { Answer, RouteSchema } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import { newShortCode } from '../../src/codes/short-code.ts';
import { openDatabase } from '../../src/db/database.ts';
import { entities } from '../../src/entities.ts';
import { kafkaForTests } from '../harness/kafka.ts';
import type { Measured } from './load.ts';
import * as subject from './scan-subjects.ts';
import { wrkScript } from './wrk.ts';

const [CODES, SECONDS] = [Number(process.argv[2] ?? 1_000_000), Number(process.argv[3] ?? 3)];
const CONNECTIONS = 64;
/** How many connections are open at a time when each carries one request. */
const NEW_CONNECTIONS = 32;
const ROUNDS = 7;
const COLD_STARTS = 3;
const run = promisify(execFile);

/** Requests per second, CPU time for each in µs, and responses other than a redirect. */
interface Throughput {
  readonly rate: number;
  readonly cpu: number;
  readonly wrong: number;
}

const folder = await mkdtemp(join(tmpdir(), 'signpost-bench-'));
await using running = new AsyncDisposableStack();
running.defer(() => rm(folder, { recursive: true, force: true }));
subject.reserveCore();
const postgres = await startPostgres({ folder: join(folder, 'postgres') });
running.defer(() => postgres.stop());
const database = await openDatabase(postgres.url, 2, entities);
await database.migrate();
await database.close();
const kafka = await kafkaForTests();
running.defer(() => kafka?.stop());
const logger = pino({ level: 'warn' });
const kafkaBrokers = kafka ? [kafka.brokers] : [];
const log = await openLog({ kafkaBrokers, databaseUrl: postgres.url, clientId: 'bench', logger });
await log.ensureTopics(TOPICS);
await log.close();

const [many, measured, one] = [
  await fillTable('many', CODES),
  await fillTable('measured', CODES),
  await fillTable('one', 1),
];
const env = { DATABASE_URL: postgres.gatewayUrl, KAFKA_BROKERS: kafka?.brokers };
const starts: number[] = [];
let gateway = await subject.startGateway(many.folder, env);
for (starts.push(gateway.startMs); starts.length < COLD_STARTS; starts.push(gateway.startMs)) {
  await gateway.stop();
  gateway = await subject.startGateway(many.folder, env);
}
running.defer(() => gateway.stop());
const beforeLoad = await subject.memoryOf(gateway);
const subjects = new Map<string, subject.Subject>([
  ['gateway, one worker', gateway],
  ['node:http, constant', await subject.startConstant()],
]);
const nginx = await subject.startNginx(folder);
if (nginx) subjects.set('nginx, constant', nginx);
for (const each of subjects.values()) if (each !== gateway) running.defer(() => each.stop());

const wrk = subject.isInstalled('wrk');
const throughputs = new Map<string, Throughput[]>([...subjects.keys()].map((name) => [name, []]));
const newConnectionThroughputs = new Map<string, Throughput[]>([...subjects.keys()].map((name) => [name, []]));
const latencies = new Map<string, Measured[]>([...subjects.keys()].map((name) => [name, []]));
for (let round = 0; round <= ROUNDS; round++) {
  for (const [name, each] of subjects) {
    const throughput = await maxThroughput(each, many.codes);
    const withNew = wrk ? await maxThroughput(each, many.codes, true) : undefined;
    // The first round warms up.
    if (round === 0) continue;
    throughputs.get(name)?.push(throughput);
    if (withNew) newConnectionThroughputs.get(name)?.push(withNew);
  }
}
const afterLoad = await subject.memoryOf(gateway);
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, each] of subjects) {
    latencies.get(name)?.push(await load(each, many.codes, median(throughputs.get(name)?.map(({ rate }) => rate)) / 2));
  }
}

const figures = [...subjects.keys()].map((name) => ({
  name,
  rate: median(throughputs.get(name)?.map(({ rate }) => rate)),
  cpu: median(throughputs.get(name)?.map(({ cpu }) => cpu)),
  opened: median(newConnectionThroughputs.get(name)?.map(({ rate }) => rate)),
  p50: median(latencies.get(name)?.map(({ p50 }) => p50)),
  p99: median(latencies.get(name)?.map(({ p99 }) => p99)),
}));
const [, base] = figures;
console.log(
  `| ${CODES.toLocaleString('en')} codes | requests /s | of node:http | CPU each | new connections /s | of node:http | p50 at half | p99 at half |`,
);
console.log('| --- | --- | --- | --- | --- | --- | --- | --- |');
for (const { name, rate, cpu, opened, p50, p99 } of figures) {
  const cells = [
    name,
    Math.round(rate).toLocaleString('en'),
    (rate / (base?.rate ?? 0)).toFixed(2),
    `${cpu.toFixed(1)} µs`,
    ...(wrk ? [Math.round(opened).toLocaleString('en'), (opened / (base?.opened ?? 0)).toFixed(2)] : ['–', '–']),
    ...[p50, p99].map((ms) => `${ms.toFixed(2)} ms`),
  ];
  console.log(`| ${cells.join(' | ')} |`);
}
const wrong = [...throughputs.values(), ...newConnectionThroughputs.values(), ...latencies.values()]
  .flat()
  .reduce((sum, each) => sum + each.wrong, 0);
console.log(`
start with the table on disk: ${median(starts)} ms (from the start of the process until it is ready)
memory of the worker: ${memoryText(afterLoad)}; before the load ${memoryText(beforeLoad)}
responses other than a redirect: ${wrong}
load: ${wrk ? 'wrk' : 'load.ts'}, ${CONNECTIONS} connections${subject.first.length > 0 ? ', first on its core' : ''}; \
${subject.pinned ? 'the subject alone on one core' : 'not pinned'}; log: ${kafka ? 'Kafka' : 'Postgres'}`);
await compareWithMetrics();
const drained = performance.now();
const shipped = await spoolShipped(gateway);
console.log(
  `scans shipped: ${shipped}, the last ${((performance.now() - drained) / 1_000).toFixed(0)} s after the load`,
);
const small = await subject.startGateway(one.folder, env);
running.defer(() => small.stop());
const rates: number[] = [];
while (rates.length < 3) rates.push((await maxThroughput(small, one.codes)).rate);
const memory = memoryText(await subject.memoryOf(small));
console.log(`with 1 code: ${Math.round(median(rates)).toLocaleString('en')} requests /s; memory: ${memory}`);

/** Prints the rate, and the CPU time of a request, of a worker with metrics relative to one without. */
async function compareWithMetrics(): Promise<void> {
  const metricsPort = await freePort();
  const withMetrics = await subject.startGateway(measured.folder, { ...env, METRICS_PORT: String(metricsPort) });
  const scraping = setInterval(() => {
    fetch(`http://${LOOPBACK}:${metricsPort}/metrics`).then((response) => response.text(), console.error);
  }, 1_000);
  const ratios: { readonly rate: number; readonly cpu: number }[] = [];
  for (let round = 0; round <= 2 * ROUNDS; round++) {
    const without = [await maxThroughput(gateway, many.codes)];
    const metered = [
      await maxThroughput(withMetrics, measured.codes),
      await maxThroughput(withMetrics, measured.codes),
    ];
    without.push(await maxThroughput(gateway, many.codes));
    const ratio = (figure: 'cpu' | 'rate') => sum(metered, figure) / sum(without, figure);
    if (round > 0) ratios.push({ rate: ratio('rate'), cpu: ratio('cpu') });
  }
  clearInterval(scraping);
  await withMetrics.stop();
  const [rate, cpu] = [median(ratios.map((each) => each.rate)), median(ratios.map((each) => each.cpu))];
  const rounds = ratios.map((each) => each.rate.toFixed(2)).join(', ');
  console.log(`with metrics: ${rate.toFixed(3)} of the rate (${rounds}), ${cpu.toFixed(3)} of the CPU time`);
}

function sum(throughputs: readonly Throughput[], figure: 'cpu' | 'rate'): number {
  return throughputs.reduce((total, each) => total + each[figure], 0);
}

/** Creates codes, in a file for the load and in a route table for a gateway. */
async function fillTable(name: string, count: number): Promise<{ folder: string; codes: string }> {
  const paths = { folder: join(folder, name), codes: join(folder, `${name}.codes`) };
  const shortCodes = Array.from({ length: count }, newShortCode);
  await writeFile(paths.codes, shortCodes.join('\n'));
  const table = openRouteTable(join(paths.folder, 'routes'), logger);
  const accountId = encodeId('acct', newUuid());
  for (let at = 0; at < count; at += 10_000) {
    const routes = shortCodes.slice(at, at + 10_000).map((shortCode) => {
      const targetUrl = `https://example.com/menu?table=${shortCode}`;
      const value = { shortCode, codeId: encodeId('qr', newUuid()), accountId, answer: Answer.REDIRECT, targetUrl };
      return create(RouteSchema, { version: 1n, entry: { case: 'code', value } });
    });
    await table.advance(routes, { partition: 0, next: 0n });
  }
  await table.close();
  return paths;
}

/** Sends as many requests as possible. `close`: with a new connection for each, which requires wrk. */
async function maxThroughput(each: subject.Subject, codes: string, close = false): Promise<Throughput> {
  const before = await subject.cpuOf(each);
  const { requests, rate, wrong } = wrk ? await wrkOf(each, codes, close) : await load(each, codes);
  return { rate, wrong, cpu: ((await subject.cpuOf(each)) - before) / requests };
}

async function wrkOf(
  { port }: subject.Subject,
  codes: string,
  close: boolean,
): Promise<Pick<Measured, 'requests' | 'rate' | 'wrong'>> {
  const script = await wrkScript(folder, codes, close);
  const options = [
    '-t1',
    `-c${close ? NEW_CONNECTIONS : CONNECTIONS}`,
    `-d${SECONDS}s`,
    '-s',
    script,
    `http://${LOOPBACK}:${port}/`,
  ];
  const stdout = await runWithPriority('wrk', options);
  return JSON.parse(/^\{.*\}$/m.exec(stdout)?.[0] ?? '') as Measured;
}

async function load({ port }: subject.Subject, codes: string, rate?: number): Promise<Measured> {
  const options = { port, connections: CONNECTIONS, seconds: SECONDS, rate, codes };
  const program = join(import.meta.dirname, 'load.ts');
  return JSON.parse(await runWithPriority(process.execPath, [program, JSON.stringify(options)])) as Measured;
}

async function runWithPriority(program: string, options: readonly string[]): Promise<string> {
  const [command = '', ...more] = [...subject.first, program, ...options];
  return (await run(command, more)).stdout;
}

/** Waits until the spool is empty; returns the number of shipped scans. */
async function spoolShipped({ port }: subject.Subject): Promise<number> {
  for (;;) {
    const response = await fetch(`http://${LOOPBACK}:${port}/readyz`);
    const { scans } = (await response.json()) as { scans: { shipped: number; waiting_bytes: number } };
    if (scans.waiting_bytes === 0) return scans.shipped;
    await sleep(500);
  }
}

function memoryText({ resident, own, files, share }: subject.Memory): string {
  return `${resident} MiB resident = ${own} its own + ${files} pages of the table and of programs (its share of all: ${share})`;
}

function median(values: readonly number[] = []): number {
  return values.toSorted((one, other) => one - other)[values.length >> 1] ?? Number.NaN;
}

/**
 * How fast one gateway worker answers scans, compared with `node:http` and nginx answering with a constant redirect.
 *
 *   npm run bench:scan [-- codes seconds]      default: 1,000,000 codes and 3 seconds a round
 *
 * Starts everything itself: a Postgres, a Kafka if Java and Maven are installed (else the log is in Postgres), and the
 * gateway with its route table on disk, spool and shipping enabled. The subject has the first CPU core for itself; the
 * load, which has priority, and everything else share the others. Rounds are interleaved, figures are medians. The
 * maximum of requests per second is measured by wrk if that is installed; latencies are measured at half of the
 * subject's own maximum, by `load.ts`. Requests are those of a phone, for codes in random order. With wrk, requests
 * with a new connection each are measured too.
 */
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { LOOPBACK } from '../../local/free-port.ts';
import { kafkaForTests } from '../harness/kafka.ts';
import type { Measured } from './load.ts';
import { median } from './median.ts';
import { startScanDatabase } from './scan-database.ts';
import { CONNECTIONS, fillTable, scanLoad, type Throughput, wrk } from './scan-load.ts';
import * as subject from './scan-subjects.ts';

const [CODES, SECONDS] = [Number(process.argv[2] ?? 1_000_000), Number(process.argv[3] ?? 3)];
const ROUNDS = 7;
const COLD_STARTS = 3;

await using running = new AsyncDisposableStack();
subject.reserveCore();
const kafka = await kafkaForTests();
running.defer(() => kafka?.stop());
const { folder, postgres } = await startScanDatabase(running, { kafkaBrokers: kafka ? [kafka.brokers] : [] });

const [many, one] = [await fillTable(join(folder, 'many'), CODES), await fillTable(join(folder, 'one'), 1)];
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

const { maxThroughput, load } = scanLoad(folder, SECONDS);
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
  openedP99: median(newConnectionThroughputs.get(name)?.map((each) => each.p99)),
  p50: median(latencies.get(name)?.map(({ p50 }) => p50)),
  p99: median(latencies.get(name)?.map(({ p99 }) => p99)),
}));
const [, base] = figures;
console.log(
  `| ${CODES.toLocaleString('en')} codes | requests /s | of node:http | CPU each | new connections /s | of node:http | their p99 | p50 at half | p99 at half |`,
);
console.log('| --- | --- | --- | --- | --- | --- | --- | --- | --- |');
for (const { name, rate, cpu, opened, openedP99, p50, p99 } of figures) {
  const cells = [
    name,
    Math.round(rate).toLocaleString('en'),
    (rate / (base?.rate ?? 0)).toFixed(2),
    `${cpu.toFixed(1)} µs`,
    ...(wrk
      ? [
          Math.round(opened).toLocaleString('en'),
          (opened / (base?.opened ?? 0)).toFixed(2),
          `${openedP99.toFixed(2)} ms`,
        ]
      : ['–', '–', '–']),
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

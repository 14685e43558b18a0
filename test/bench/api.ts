/**
 * What the REST API costs, compared with the same statements run directly through `pg` in one process.
 *
 *   npm run bench:api [-- operation…]      default: create get list change
 *
 * Rounds alternate between REST and direct statements, after a warm-up of 33,000 requests each: until then, V8 compiles
 * much of the code. A key allows 120 requests a minute, so requests are spread over accounts, and the rate-limit
 * windows are reset between slices of a round, outside the measured time; the outbox of a round is published before the
 * next begins. The load runs in this process and shares the machine with everything else. The CPU time of a request is
 * measured for every process, too.
 */
import { performance } from 'node:perf_hooks';
import { openDatabase } from '../../src/db/database.ts';
import { entities } from '../../src/entities.ts';
import { outboxPublished } from '../harness/outbox-published.ts';
import { ACCOUNTS, type Operation, operationsOn } from './api-operations.ts';
import { resetBurstLimits } from './burst-limits.ts';
import { cpuOf } from './cpu.ts';
import { median } from './median.ts';
import { startPlatform } from './platform.ts';
import { connectRest, type RestClient } from './rest-client.ts';

const CONCURRENCY = 16;
const ROUNDS = 5;
const SLICE = ACCOUNTS * 110;
const SLICES = { warmUp: 30, round: 2 };

const PARTS = ['gateway', 'core', 'background', 'postgres', 'load'] as const;
type Part = (typeof PARTS)[number];

/** Requests a second, latencies in ms, and the CPU of a request in µs. */
type Round = Record<'rate' | 'p50' | 'p99' | Part, number>;

await using platform = await startPlatform();
const { pids } = platform;
const database = await openDatabase(platform.databaseUrl, 20, entities);
const { pool } = database;
const operations = await operationsOn(platform, pool);
const clients = await Promise.all(
  Array.from({ length: CONCURRENCY }, () => connectRest(Number(new URL(platform.url).port))),
);

const requested = process.argv.slice(2);
const rates = ['| Operation | REST /s | p50 | p99 | straight /s | p50 | p99 | of straight |', `|${' --- |'.repeat(8)}`];
const costs = [
  '| µs of CPU | gateway | core | background | Postgres | load | straight: process | Postgres |',
  `|${' --- |'.repeat(8)}`,
];
for (const [name, { rest, straight }] of Object.entries(operations)) {
  if (requested.length > 0 && !requested.includes(name)) continue;
  await load(rest, SLICES.warmUp);
  await load(straight, SLICES.warmUp);
  const rounds: { rest: Round; straight: Round }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    rounds.push({ rest: await load(rest, SLICES.round), straight: await load(straight, SLICES.round) });
  }
  const over = medianRound(rounds.map((each) => each.rest));
  const direct = medianRound(rounds.map((each) => each.straight));
  const ratio = (over.rate / direct.rate).toFixed(2);
  rates.push(`| ${[name, ...figures(over), ...figures(direct), ratio].join(' | ')} |`);
  const cpuUsed = [...PARTS.map((part) => over[part]), direct.load, direct.postgres].map(Math.round);
  costs.push(`| ${[name, ...cpuUsed].join(' | ')} |`);
}
console.log([...rates, '', ...costs].join('\n'));
for (const client of clients) client.close();
await database.close();

/** Sends slices of requests, as many as a rate-limit window allows each, and returns the measurements. */
async function load(operation: Operation['rest'], slices: number): Promise<Round> {
  const times: number[] = [];
  let seconds = 0;
  const cpuUsed = { gateway: 0, core: 0, background: 0, postgres: 0, load: 0 };
  for (let slice = 0; slice < slices; slice++) {
    await outboxPublished(pool);
    await resetBurstLimits(pool);
    let next = slice * SLICE;
    const last = next + SLICE;
    const before = cpu();
    const start = performance.now();
    const lane = async (client: RestClient) => {
      for (let n = next++; n < last; n = next++) {
        const begin = performance.now();
        await operation(n, client);
        times.push(performance.now() - begin);
      }
    };
    await Promise.all(clients.map(lane));
    seconds += (performance.now() - start) / 1_000;
    const after = cpu();
    for (const part of PARTS) cpuUsed[part] += (after[part] - before[part]) / (slices * SLICE);
  }
  const sorted = times.toSorted((one, other) => one - other);
  const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? 0;
  return { rate: times.length / seconds, p50: at(0.5), p99: at(0.99), ...cpuUsed };
}

function medianRound(rounds: readonly Round[]): Round {
  const keys = ['rate', 'p50', 'p99', ...PARTS] as const;
  return Object.fromEntries(keys.map((key) => [key, median(rounds.map((round) => round[key]))])) as Round;
}

function figures({ rate, p50, p99 }: Round): string[] {
  return [Math.round(rate).toString(), `${p50.toFixed(1)} ms`, `${p99.toFixed(1)} ms`];
}

/** The CPU time of every part so far, in µs; `load` is this process. */
function cpu(): Record<Part, number> {
  const { user, system } = process.cpuUsage();
  return {
    gateway: cpuOf(pids.gateway),
    core: cpuOf(pids.core),
    background: cpuOf(pids.worker),
    postgres: cpuOf(pids.postgres),
    load: user + system,
  };
}

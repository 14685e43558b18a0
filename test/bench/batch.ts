/**
 * The creation of 25,000 codes in one request.
 *
 *   npm run bench:batch
 *
 * Starts a Postgres with the settings of a local run, a core and a gateway, and sends batches over REST. Measures the
 * time to the response, compared with `COPY` of as many bare rows into the same table; the time per row at sizes from
 * 1,000 to 25,000; the latencies of single creates and scans during batches of 3.5 MB, and the event loop iterations of
 * each process meanwhile; the peak memory of each process. Rounds are interleaved, and the load shares the machine with
 * everything else.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { DatabaseError } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { decodeId, newUuid } from '../../common/contract/ids.ts';
import { newShortCode } from '../../src/codes/create/short-code.ts';
import { openDatabase } from '../../src/db/database.ts';
import { entities } from '../../src/entities.ts';
import { outboxPublished } from '../harness/outbox-published.ts';
import { eventLoops, PRINT_EVENT_LOOPS } from './event-loops.ts';
import { startPlatform } from './platform.ts';
import { childrenOf, memoryOf } from './process-tree.ts';
import { connectRest, requestText } from './rest-client.ts';
import { first } from './scan-subjects.ts';
import type { Phase, SingleRequestsOptions, SingleRequestTimes } from './single-requests.ts';

const ROWS = 25_000;
const ROUNDS = 5;
const SIZES = [1_000, 5_000, 10_000, ROWS];
/** The number of batches beside other requests; `ALONE_MS`: how long those are measured alone, in ms. */
const BATCHES_BESIDE = 6;
const ALONE_MS = 15_000;
const MEMORY_MS = 100;
/** The largest body that is accepted. */
const MAX_BYTES = 3_500_000;

await using platform = await startPlatform(PRINT_EVENT_LOOPS);
const { url, pids } = platform;
const database = await openDatabase(platform.databaseUrl, 4, entities);
const { pool } = database;
const bulk = await newAccount();
const single = await newAccount();

interface Account {
  readonly key: string;
  /** UUID. */
  readonly id: string;
}

async function newAccount(): Promise<Account> {
  const { accountId, apiKey } = await platform.newAccount();
  return { key: apiKey, id: decodeId('acct', accountId) ?? '' };
}

/** The body of a batch, created in advance, as that would block the event loop of the measurements. */
function bodyOf(rows: number, padding = ''): Buffer {
  const row = (n: number) => ({
    target_url: `https://shop.example.com/menu?table=${n}`,
    name: `Table ${n} outside${padding}`,
    external_ref: `T-${n}`,
  });
  return Buffer.from(JSON.stringify({ rows: Array.from({ length: rows }, (_, n) => row(n)) }));
}

const bodies = new Map(SIZES.map((size) => [size, bodyOf(size)]));
/** Added to each name, so that a body has almost `MAX_BYTES`. */
const PADDING = '.'.repeat((MAX_BYTES - (bodies.get(ROWS)?.length ?? 0)) / ROWS);

/** Sends a batch of this many rows and returns the time to the response, in ms. */
async function batch(rows: number): Promise<number> {
  const start = performance.now();
  const response = await fetch(`${url}/api/v1/batches`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bulk.key}` },
    body: bodies.get(rows) ?? null,
  });
  const { data } = (await response.json()) as { data: { status: string; counts: { created: number } } };
  if (response.status !== 201 || data.counts.created !== rows) throw new Error(`the batch answered ${response.status}`);
  return performance.now() - start;
}

/** The time of a `COPY` of as many rows, with the columns that every code has, into the same table, in ms. */
async function copy(rows: number): Promise<number> {
  const lines = Array.from({ length: rows }, (_, n) => {
    return `${newUuid()}\t${single.id}\tdynamic\t${newShortCode()}\thttps://shop.example.com/menu?table=${n}\tTable ${n} outside\n`;
  });
  const client = await pool.connect();
  try {
    const start = performance.now();
    await pipeline(
      Readable.from(lines.join('')),
      client.query(copyFrom('copy codes (id, account_id, type, short_code, target_url, name) from stdin')),
    );
    return performance.now() - start;
  } catch (error) {
    // One of the random short codes existed already, which happens with this many.
    if (error instanceof DatabaseError && error.constraint === 'codes_short_code_key') return copy(rows);
    throw error;
  } finally {
    client.release();
  }
}

function at(times: readonly number[], share: number): number {
  return times.toSorted((one, other) => one - other)[Math.floor(times.length * share)] ?? 0;
}

/** The peak memory of all Postgres processes, in MiB: the anonymous memory of each, and the shared memory once. */
let postgresPeak = 0;
const measuring = setInterval(() => {
  const all = [pids.postgres, ...childrenOf(pids.postgres)];
  // 0 for processes that have exited meanwhile.
  const sizes = (figure: 'RssAnon' | 'RssShmem') => all.map((pid) => memoryOf(pid, figure) || 0);
  const own = sizes('RssAnon').reduce((sum, size) => sum + size, 0);
  postgresPeak = Math.max(postgresPeak, own + Math.max(...sizes('RssShmem')));
}, MEMORY_MS);

const answers: number[] = [];
const copies: number[] = [];
const logged: number[] = [];
for (let round = 0; round <= ROUNDS; round++) {
  const start = performance.now();
  const answer = await batch(ROWS);
  await outboxPublished(pool);
  const whole = performance.now() - start;
  const took = await copy(ROWS);
  // The first round warms up.
  if (round === 0) continue;
  answers.push(answer);
  logged.push(whole);
  copies.push(took);
}
const ratio = at(answers, 0.5) / at(copies, 0.5);
console.log(
  `25,000 rows: answered (all created) in ${at(answers, 0.5).toFixed(0)} ms, all published to the log after ${at(logged, 0.5).toFixed(0)} ms;`,
);
console.log(
  `COPY of 25,000 bare rows: ${at(copies, 0.5).toFixed(0)} ms; the batch takes ${ratio.toFixed(1)} times as long.\n`,
);

console.log('| rows | answer | a row |\n| --- | --- | --- |');
for (const size of SIZES) {
  const times: number[] = [];
  for (let round = 0; round < 3; round++) {
    times.push(await batch(size));
    await outboxPublished(pool);
  }
  console.log(`| ${size} | ${at(times, 0.5).toFixed(0)} ms | ${((at(times, 0.5) / size) * 1_000).toFixed(0)} µs |`);
}

// From here on this process does as little as possible, as it shares the CPU cores with what is measured.
clearInterval(measuring);
const created = await fetch(`${url}/api/v1/qr-codes`, {
  method: 'POST',
  headers: { authorization: `Bearer ${single.key}` },
  body: JSON.stringify({ target_url: 'https://example.com' }),
});
const { data: code } = (await created.json()) as { data: { scan_url: string } };
const options: SingleRequestsOptions = {
  url,
  databaseUrl: platform.databaseUrl,
  key: single.key,
  scanUrl: code.scan_url,
};
// Like a client on another machine it waits for no CPU core: it has a session of its own, between which Linux divides
// the CPU time first, and real-time priority where that is permitted.
const program = join(import.meta.dirname, 'single-requests.ts');
const [command = '', ...args] = [...first, process.execPath, program, JSON.stringify(options)];
const requests = spawn(command, args, { detached: true, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
const batches = await connectRest(Number(new URL(url).port));
const largest = requestText('POST', '/batches', bulk.key, bodyOf(ROWS, PADDING).toString());
const batchLoops: Awaited<ReturnType<typeof eventLoops>> = [];
const enter = (phase: Phase) => requests.send(phase);
await sleep(ALONE_MS);
for (let round = 0; round < BATCHES_BESIDE; round++) {
  await eventLoops(platform);
  enter('beside a batch');
  const status = await batches.send(largest);
  if (status !== 201) throw new Error(`the batch answered ${status}`);
  batchLoops.push(...(await eventLoops(platform)));
  enter('while it is published');
  await outboxPublished(pool);
}
const latencies = await new Promise<SingleRequestTimes>((resolve, reject) => {
  requests.once('message', resolve);
  requests.once('exit', (exitCode) => reject(new Error(`single-requests.ts exited with code ${exitCode}`)));
  enter('end');
});
requests.disconnect();
batches.close();
const phases = ['alone', 'beside a batch', 'while it is published'] as const;
console.log(
  `\n| | ${phases.map((phase) => `${phase}: p50 | p99`).join(' | ')} |\n| --- | ${phases.map(() => '--- | ---').join(' | ')} |`,
);
for (const name of ['create', 'scan'] as const) {
  const cells = phases.flatMap((phase) => {
    const times = latencies[name][phase] ?? [];
    return [at(times, 0.5), at(times, 0.99)];
  });
  console.log(`| ${name} | ${cells.map((ms) => `${ms.toFixed(1)} ms`).join(' | ')} |`);
}

console.log(`\nEvent loop iterations during ${BATCHES_BESIDE} requests of ${largest.length} bytes:\n`);
console.log('| process | p99 | longest for each | busy | peak memory |\n| --- | --- | --- | --- | --- |');
for (const [process, loops] of Map.groupBy(batchLoops, (loop) => loop.process)) {
  const longest = loops.map(({ max }) => max.toFixed(0)).join(', ');
  const [p99, work] = [
    at(
      loops.map((loop) => loop.p99),
      0.5,
    ),
    at(
      loops.map((loop) => loop.utilization),
      0.5,
    ),
  ];
  const memory = memoryOf(loops[0]?.pid ?? 0, 'VmHWM');
  console.log(
    `| ${process} | ${p99.toFixed(1)} ms | ${longest} ms | ${(work * 100).toFixed(0)} % | ${memory.toFixed(0)} MiB |`,
  );
}
console.log(`| gateway, first process | | | | ${memoryOf(pids.gateway, 'VmHWM').toFixed(0)} MiB |`);
console.log(`| Postgres, all processes | | | | ${postgresPeak.toFixed(0)} MiB |`);
await database.close();

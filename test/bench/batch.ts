/**
 * 25,000 codes in one request.
 *
 *   npm run bench:batch
 *
 * Starts a Postgres with the settings of a local run, a core and a gateway, and sends batches over REST: time to the
 * answer, beside `COPY` of as many bare rows into the same table; time a row at sizes from 1,000 to 25,000; what other
 * requests and scans wait meanwhile; the longest pause of either event loop; peak memory. Rounds are interleaved, and
 * the load shares the machine with all of it.
 */
import { readFile } from 'node:fs/promises';
import { performance } from 'node:perf_hooks';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { from as copyFrom } from 'pg-copy-streams';
import { newShortCode } from '../../src/codes/short-code.ts';
import { decodeId, newUuid } from '../../src/contract/ids.ts';
import { openDatabase } from '../../src/db/database.ts';
import { startPlatform } from './platform.ts';
import { settled } from './settled.ts';

const ROWS = 25_000;
const ROUNDS = 5;
const SIZES = [1_000, 5_000, 10_000, ROWS];
const PROBE_MS = 20;

await using platform = await startPlatform();
const { url } = platform;
const database = await openDatabase(platform.databaseUrl, 4);
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

/** Sends a batch and gives how long the answer took, in ms. */
async function batch(rows: number): Promise<number> {
  const body = JSON.stringify({
    rows: Array.from({ length: rows }, (_, n) => ({
      target_url: `https://shop.example.com/menu?table=${n}`,
      name: `Table ${n} outside`,
      external_ref: `T-${n}`,
    })),
  });
  const start = performance.now();
  const response = await fetch(`${url}/api/v1/batches`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bulk.key}` },
    body,
  });
  const { data } = (await response.json()) as { data: { status: string; counts: { created: number } } };
  if (response.status !== 201 || data.counts.created !== rows) throw new Error(`the batch answered ${response.status}`);
  return performance.now() - start;
}

/** `COPY` of as many rows with what every code has into the same table, in ms. */
async function copy(rows: number): Promise<number> {
  const lines = Array.from({ length: rows }, (_, n) => {
    return `${newUuid()}\t${single.id}\tdynamic\t${newShortCode()}\thttps://shop.example.com/menu?table=${n}\tTable ${n} outside\n`;
  });
  const client = await pool.connect();
  const start = performance.now();
  await pipeline(
    Readable.from(lines.join('')),
    client.query(copyFrom('copy codes (id, account_id, type, short_code, target_url, name) from stdin')),
  );
  const took = performance.now() - start;
  client.release();
  return took;
}

/** What single creates and scans take while `work` runs, in ms. */
async function beside(work: () => Promise<unknown>): Promise<{ create: number[]; scan: number[] }> {
  const times = { create: [] as number[], scan: [] as number[] };
  let over = false;
  const probe = async (list: number[], one: () => Promise<Response>) => {
    while (!over) {
      const start = performance.now();
      await (await one()).arrayBuffer();
      list.push(performance.now() - start);
      await new Promise((resolve) => setTimeout(resolve, PROBE_MS));
    }
  };
  const probes = [
    probe(times.create, async () => {
      await pool.query('update meters set admissions = array_fill(0::bigint, array[120]) where account_id = $1', [
        single.id,
      ]);
      return fetch(`${url}/api/v1/qr-codes`, {
        method: 'POST',
        headers: { authorization: `Bearer ${single.key}` },
        body: JSON.stringify({ target_url: 'https://example.com' }),
      });
    }),
    probe(times.scan, () => fetch(scanned, { redirect: 'manual' })),
  ];
  await work();
  over = true;
  await Promise.all(probes);
  return times;
}

async function peakMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1_024;
}

function at(times: readonly number[], share: number): number {
  return times.toSorted((one, other) => one - other)[Math.floor(times.length * share)] ?? 0;
}

const made = await fetch(`${url}/api/v1/qr-codes`, {
  method: 'POST',
  headers: { authorization: `Bearer ${single.key}` },
  body: JSON.stringify({ target_url: 'https://example.com' }),
});
const scanned = ((await made.json()) as { data: { scan_url: string } }).data.scan_url;

const answers: number[] = [];
const copies: number[] = [];
const logged: number[] = [];
for (let round = 0; round <= ROUNDS; round++) {
  const start = performance.now();
  const answer = await batch(ROWS);
  await settled(pool);
  const took = await copy(ROWS);
  // The first round warms up.
  if (round === 0) continue;
  answers.push(answer);
  logged.push(performance.now() - start - took);
  copies.push(took);
}
const ratio = at(answers, 0.5) / at(copies, 0.5);
console.log(
  `25,000 rows: answered (all created) in ${at(answers, 0.5).toFixed(0)} ms, all told to the log after ${at(logged, 0.5).toFixed(0)} ms;`,
);
console.log(
  `COPY of 25,000 bare rows: ${at(copies, 0.5).toFixed(0)} ms; the batch takes ${ratio.toFixed(1)} times as long.\n`,
);

console.log('| rows | answer | a row |\n| --- | --- | --- |');
for (const size of SIZES) {
  const times: number[] = [];
  for (let round = 0; round < 3; round++) {
    times.push(await batch(size));
    await settled(pool);
  }
  console.log(`| ${size} | ${at(times, 0.5).toFixed(0)} ms | ${((at(times, 0.5) / size) * 1_000).toFixed(0)} µs |`);
}

const idle = await beside(() => new Promise((resolve) => setTimeout(resolve, 5_000)));
const busy = await beside(async () => {
  for (let round = 0; round < 3; round++) {
    await batch(ROWS);
    await settled(pool);
  }
});
console.log('\n| beside | p50 idle | p99 idle | p50 during | p99 during |\n| --- | --- | --- | --- | --- |');
for (const name of ['create', 'scan'] as const) {
  const cells = [idle[name], busy[name]].flatMap((times) => [at(times, 0.5), at(times, 0.99)]);
  console.log(`| ${name} | ${cells.map((ms) => `${ms.toFixed(1)} ms`).join(' | ')} |`);
}
console.log(
  `\nPeak memory: core ${(await peakMiB(platform.pids.core)).toFixed(0)} MiB, gateway ${(await peakMiB(platform.pids.gateway)).toFixed(0)} MiB`,
);
await database.close();

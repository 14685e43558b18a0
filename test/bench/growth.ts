/**
 * What ten times as many codes cost: of one account in Postgres over REST, and in a gateway's route table.
 *
 *   npm run bench:growth [-- codes more]      default: 1,000,000 and 10,000,000
 *
 * Both sizes run at the same time, each with processes of its own, and take turns: requests go to REST one at a time,
 * scans as fast as one worker answers them. It needs about 20 GB of memory and disk, and about ten minutes. Tables are
 * filled in /dev/shm if there is one, since LMDB forces each of their commits to disk.
 */
import { existsSync } from 'node:fs';
import { stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { decodeId, encodeId } from '../../common/contract/ids.ts';
import { resetBurstLimits } from './burst-limits.ts';
import { cpuOf } from './cpu.ts';
import { median } from './median.ts';
import { startPlatform } from './platform.ts';
import { connectRest, requestText } from './rest-client.ts';
import { startScanDatabase } from './scan-database.ts';
import { fillTable, scanLoad } from './scan-load.ts';
import * as subject from './scan-subjects.ts';

const { positionals } = parseArgs({ allowPositionals: true });
const SIZES = [Number(positionals[0] ?? 1_000_000), Number(positionals[1] ?? 10_000_000)];
const ROUNDS = 9;
/** Fewer than the 120 that a key may send in a minute. */
const REQUESTS = 100;
/** How many codes are scanned, in random order. */
const SCANNED = 500_000;
/** Codes that one statement creates. */
const STEP = 500_000;

const count = new Intl.NumberFormat('en').format;

/** Medians of interleaved rounds by size, and of each size to the first. */
function print(what: string, figures: ReadonlyMap<number, readonly number[]>, unit: string, digits: number): void {
  const medians = SIZES.map((size) => median(figures.get(size)));
  const ratio = (medians[1] ?? 0) / (medians[0] ?? 1);
  console.log(
    `| ${[what, ...medians.map((each) => `${each.toFixed(digits)} ${unit}`), ratio.toFixed(2)].join(' | ')} |`,
  );
}

console.log(`| | ${SIZES.map((size) => `${count(size)} codes`).join(' | ')} | ratio |\n| --- | --- | --- | --- |`);
await rest();
await scans();

/** Requests to the REST API for an account with all codes: the median duration, and CPU of all processes. */
async function rest(): Promise<void> {
  await using running = new AsyncDisposableStack();
  const accounts = [];
  for (const size of SIZES) {
    const platform = running.use(await startPlatform());
    const pool = new pg.Pool({ connectionString: platform.databaseUrl, max: 2 });
    running.defer(() => pool.end());
    const { accountId, apiKey } = await platform.newAccount();
    const account = decodeId('acct', accountId);
    const began = performance.now();
    for (let from = 1; from <= size; from += STEP) {
      await pool.query(
        `insert into codes (id, account_id, type, short_code, target_url, name)
         select uuidv7(), $1::uuid, 'dynamic', substr(md5($1::uuid::text || n), 1, 14), 'https://example.com/' || n, 'Code ' || n
         from generate_series($2::integer, $3::integer) as n`,
        [account, from, Math.min(from + STEP - 1, size)],
      );
    }
    await pool.query('update code_counts set listed = $2, live = $2 where account_id = $1', [account, size]);
    await pool.query('vacuum analyze codes');
    // From all over the table.
    const { rows } = await pool.query<{ id: string }>(
      'select id from codes tablesample system (0.5) order by random() limit 5000',
    );
    const sizeOf = await pool.query<{ bytes: string }>(`select pg_total_relation_size('codes') as bytes`);
    accounts.push({
      size,
      pool,
      port: Number(new URL(platform.url).port),
      apiKey,
      pids: Object.values(platform.pids),
      ids: rows.map(({ id }) => encodeId('qr', id)),
      bytesEach: Number(sizeOf.rows[0]?.bytes) / size,
      microsecondsEach: ((performance.now() - began) * 1_000) / size,
    });
  }
  const operations = {
    create: () => ['POST', '/qr-codes', { target_url: 'https://example.com/menu' }] as const,
    get: (id: string) => ['GET', `/qr-codes/${id}`] as const,
    'list 25': () => ['GET', '/qr-codes'] as const,
    change: (id: string, n: number) => ['PATCH', `/qr-codes/${id}`, { name: `${n} ${performance.now()}` }] as const,
  };
  for (const [name, request] of Object.entries(operations)) {
    const durations = new Map<number, number[]>(SIZES.map((size) => [size, []]));
    const cpu = new Map<number, number[]>(SIZES.map((size) => [size, []]));
    for (let round = 0; round <= ROUNDS; round++) {
      for (const { size, pool, port, apiKey, pids, ids } of accounts) {
        // For each round: an idle connection would be closed.
        const client = await connectRest(port);
        await resetBurstLimits(pool);
        const used = () => pids.reduce((sum, pid) => sum + cpuOf(pid), 0);
        const before = used();
        const times: number[] = [];
        for (let n = 0; n < REQUESTS; n++) {
          const id = ids[Math.floor(Math.random() * ids.length)] ?? '';
          const [method, path, body] = request(id, n);
          const start = performance.now();
          const status = await client.send(requestText(method, path, apiKey, body && JSON.stringify(body)));
          if (status >= 300) throw new Error(`${method} ${path} answered ${status}`);
          times.push(performance.now() - start);
        }
        client.close();
        // The first round warms up.
        if (round === 0) continue;
        durations.get(size)?.push(median(times));
        cpu.get(size)?.push((used() - before) / REQUESTS);
      }
    }
    print(`${name}, duration`, durations, 'ms', 2);
    print(`${name}, CPU of all processes`, cpu, 'µs', 0);
  }
  print('bytes of a code in Postgres', new Map(accounts.map(({ size, bytesEach }) => [size, [bytesEach]])), '', 0);
  const inserted = new Map(accounts.map(({ size, microsecondsEach }) => [size, [microsecondsEach]]));
  print('writing a code and analysing it, by SQL', inserted, 'µs', 1);
}

/** Scans of random codes by one worker, its start and its memory. */
async function scans(): Promise<void> {
  await using running = new AsyncDisposableStack();
  subject.reserveCore();
  const parent = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
  const { folder, postgres } = await startScanDatabase(running, { parent });
  const gateways = [];
  const [starts, files, memory, tables] = [new Map(), new Map(), new Map(), new Map<number, number[]>()];
  for (const size of SIZES) {
    const began = performance.now();
    const { codes, folder: data, shortCodes } = await fillTable(join(folder, String(size)), size);
    // The load does not need all of them, in an order that has nothing to do with the table's.
    await writeFile(codes, shortCodes.slice(0, SCANNED).join('\n'));
    tables.set(size, [((performance.now() - began) * 1_000) / size]);
    const durations = [];
    let gateway = await subject.startGateway(data, { DATABASE_URL: postgres.gatewayUrl });
    while (durations.push(gateway.startMs) < 5) {
      await gateway.stop();
      gateway = await subject.startGateway(data, { DATABASE_URL: postgres.gatewayUrl });
    }
    running.defer(() => gateway.stop());
    starts.set(size, durations);
    files.set(size, [((await stat(join(data, 'routes', 'data.mdb'))).blocks * 512) / size]);
    gateways.push({ size, gateway, codes });
  }
  const { maxThroughput } = scanLoad(folder, 2);
  const [rates, cpu] = [new Map<number, number[]>(), new Map<number, number[]>()];
  for (let round = 0; round <= ROUNDS; round++) {
    for (const { size, gateway, codes } of gateways) {
      const throughput = await maxThroughput(gateway, codes);
      if (throughput.wrong > 0) throw new Error(`${throughput.wrong} scans were not redirected`);
      if (round === 0) continue;
      rates.set(size, [...(rates.get(size) ?? []), throughput.rate]);
      cpu.set(size, [...(cpu.get(size) ?? []), throughput.cpu]);
    }
  }
  for (const { size, gateway } of gateways) memory.set(size, [(await subject.memoryOf(gateway)).own]);
  print('scans a second, one worker', rates, '', 0);
  print('a scan, CPU of the worker', cpu, 'µs', 1);
  print('start of a gateway', starts, 'ms', 0);
  print('memory of the worker without pages of files', memory, 'MiB', 0);
  print('bytes of a route on disk', files, '', 0);
  print('writing a route', tables, 'µs', 1);
}
